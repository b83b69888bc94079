"""Nothing outside the root is opened, whatever names, links and races there are."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cobre.errors import CobreError
from cobre.mcp.paths import Root, clean

SECRET = b"secret"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """``inside/a/file.txt``, and next to the root what must not be read."""
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "elsewhere" / "a").mkdir(parents=True)
    (tmp_path / "elsewhere" / "a" / "file.txt").write_bytes(SECRET)
    place = tmp_path / "inside"
    (place / "a").mkdir(parents=True)
    (place / "a" / "file.txt").write_bytes(b"ours")
    return Root.at(place)


def kind(root: Root, place: str) -> str:
    with pytest.raises(CobreError) as caught:
        root.read(place)
    assert str(root.path.parent) not in str(caught.value)
    return caught.value.kind


@pytest.mark.parametrize(
    "place",
    [
        "../secret.txt",
        "a/../../secret.txt",
        "/etc/passwd",
        "..",
        "a/..",
        "//etc/passwd",
        "./../inside/a/file.txt",
    ],
)
def test_paths_that_lead_out_are_refused(root: Root, place: str) -> None:
    assert kind(root, place) == "PathOutsideRoot"


@pytest.mark.parametrize("place", ["a\0b", "x" * 2000, "\udce9"])
def test_what_is_no_path_is_refused(root: Root, place: str) -> None:
    assert kind(root, place) == "InvalidPath"


@pytest.mark.parametrize("place", ["none", "a/none", "a/file.txt/more", "a", "y" * 300])
def test_what_is_no_file_is_refused(root: Root, place: str) -> None:
    assert kind(root, place) in ("FileNotFound", "NotAFile", "CannotOpen")


def test_plain_names_and_links_that_stay_inside_are_followed(root: Root) -> None:
    (root.path / "near").symlink_to("a/../a")
    (root.path / "absolute").symlink_to(root.path / "a")
    (root.path / "again").symlink_to("near")
    for place in ("a/file.txt", "./a//file.txt", "near/file.txt", "absolute/file.txt", "again/file.txt"):
        assert root.read(place) == b"ours"
    assert root.inside("again") == "a"


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("out", "../secret.txt"),
        ("out", "a/../../secret.txt"),
        ("out", "{outside}/secret.txt"),
        ("out", "/etc/passwd"),
        ("out", "/proc/self/exe"),
        ("out", "/proc/self/cwd"),
    ],
)
def test_links_that_lead_out_are_refused(root: Root, name: str, target: str) -> None:
    (root.path / name).symlink_to(target.format(outside=root.path.parent))
    assert kind(root, name) == "PathOutsideRoot"
    (root.path / "chain").symlink_to(name)
    assert kind(root, "chain") == "PathOutsideRoot"
    (root.path / "elsewhere").symlink_to("../elsewhere")
    assert kind(root, "elsewhere/a/file.txt") == "PathOutsideRoot"


def test_links_in_a_circle_end(root: Root) -> None:
    (root.path / "one").symlink_to("other")
    (root.path / "other").symlink_to("one")
    assert kind(root, "one") == "CannotOpen"


def test_a_pipe_holds_nothing_up(root: Root) -> None:
    os.mkfifo(root.path / "pipe")
    assert kind(root, "pipe") == "NotAFile"


def test_a_large_file_is_refused(root: Root) -> None:
    with pytest.raises(CobreError, match="more than 3"):
        root.read("a/file.txt", most=3)


def test_another_directory_under_the_name_of_the_root_is_refused(root: Root) -> None:
    root.path.rename(root.path.with_name("moved"))
    root.path.symlink_to("elsewhere")
    assert kind(root, "a/file.txt") == "RootGone"


@pytest.mark.parametrize("place", ["none", "inside/a/file.txt", "/"])
def test_a_root_is_a_directory_and_not_everything(root: Root, place: str) -> None:
    with pytest.raises(CobreError) as caught:
        Root.at(root.path.parent / place)
    assert caught.value.kind == "InvalidRoot"


def test_directories_are_made_inside_only(root: Root) -> None:
    with root.directory("b/c", create=True):
        assert (root.path / "b" / "c").is_dir()
    (root.path / "out").symlink_to("../elsewhere")
    with pytest.raises(CobreError), root.directory("out/new", create=True):
        pass
    assert not (root.path.parent / "elsewhere" / "new").exists()


def test_a_tree_with_a_way_out_is_refused(root: Root) -> None:
    (root.path / "a" / "deep").mkdir()
    (root.path / "a" / "deep" / "near").symlink_to("../file.txt")
    (root.path / "a" / "deep" / "gone").symlink_to("nothing")
    with root.directory("a") as descriptor:
        root.check_tree("a", descriptor)
        (root.path / "a" / "deep" / "out").symlink_to("../../../secret.txt")
        with pytest.raises(CobreError, match="'a/deep/out' leads out"):
            root.check_tree("a", descriptor)


def test_a_race_of_links_never_leads_out(root: Root) -> None:
    """Somebody exchanges a directory and a link to the outside while files are read through it."""
    stop = threading.Event()
    place, kept = root.path / "a", root.path / "kept"
    link = root.path / "link"

    def exchange() -> None:
        while not stop.is_set():
            link.symlink_to("../elsewhere/a")
            place.rename(kept)
            link.rename(place)
            place.unlink()
            kept.rename(place)

    thread = threading.Thread(target=exchange)
    thread.start()
    seen: set[str] = set()
    try:
        for _ in range(3_000):
            try:
                content = root.read("a/file.txt")
                assert content == b"ours"
                seen.add("read")
            except CobreError as error:
                seen.add(error.kind)
    finally:
        stop.set()
        thread.join()
    assert "read" in seen
    assert seen <= {"read", "FileNotFound", "PathOutsideRoot", "CannotOpen"}


def test_plain_forms() -> None:
    assert [clean(place) for place in ("", ".", "a/", "./a//b/.")] == [".", ".", "a", "a/b"]
