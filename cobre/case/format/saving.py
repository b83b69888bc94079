"""Writing a case directory: complete, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from cobre.case.format import layout
from cobre.case.format.documents import encode_json
from cobre.errors import OutputError

if TYPE_CHECKING:
    from cobre.case.model import Case


def save_case(case: Case, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write the documents of a case to a directory, from which it loads as it is.

    The files are written beside the target and put in place by renaming. JSON is indented, Parquet
    compressed with zstd. The path of a boundary policy is made absolute, so that it still leads there.

    Parameters
    ----------
    path
        The directory to create; it may exist if it is empty.
    overwrite
        Replace the files of the case in ``path``; what else lies there (results, notes) stays.

    Returns
    -------
    Path
        The directory, absolute.

    Raises
    ------
    OutputError
        When the directory is not empty or cannot be written.
    ValueError
        When the case was made without documents.
    """
    if case.documents is None:
        raise ValueError(f"{case!r} was made without documents, so there is nothing to save")
    target = Path(path).absolute()
    token = secrets.token_hex(4)
    new, old = (target.with_name(f".{target.name}.{token}.{end}") for end in ("new", "old"))
    try:
        target = target.resolve()
        new, old = (target.with_name(f".{target.name}.{token}.{end}") for end in ("new", "old"))
        _check_target(target, overwrite)
        new.mkdir(parents=True)
        for name, document in case.documents.items():
            if name == layout.CONFIG and target != case.path:
                _fix_boundary(document, case)
            _write(new / name, document)
        _put_in_place(new, target, old)
    except OutputError:
        raise
    except (OSError, ValueError) as error:
        raise OutputError(
            "OutputNotWritable",
            f"{target} cannot be written: {getattr(error, 'strerror', None) or error}",
            {"file": str(target)},
            "check the free space and the permissions of the directory, or choose another one",
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return target


def _check_target(target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise OutputError(
            "OutputNotWritable",
            f"{target} is not a directory",
            {"file": str(target)},
            "choose another name",
        )
    if not overwrite and target.is_dir() and any(target.iterdir()):
        raise OutputError(
            "OutputExists",
            f"the directory {target} is not empty",
            {"file": str(target)},
            "choose another directory, or pass overwrite=True to replace the case in it",
        )


def _fix_boundary(config: dict[str, Any], case: Case) -> None:
    boundary = (config.get("policy") or {}).get("boundary")
    if boundary is not None and case.policy.boundary_path is not None:
        boundary["path"] = str(case.policy.boundary_path.absolute())


def _write(file: Path, document: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(document, file, compression="zstd")
    else:
        file.write_bytes(encode_json(document, indent=2) + b"\n")


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    if not target.is_dir() or not any(target.iterdir()):
        new.rename(target)
        return
    _keep_others(target, new)
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)


def _keep_others(target: Path, new: Path) -> None:
    """Link or copy what is not part of the format into the new directory."""
    for folder in ("", *layout.DIRECTORIES):
        if not (target / folder).is_dir():
            continue
        for entry in (target / folder).iterdir():
            name = entry.relative_to(target).as_posix()
            if name in layout.KNOWN or (not folder and name in layout.DIRECTORIES and entry.is_dir()):
                continue
            (new / folder).mkdir(exist_ok=True)
            if entry.is_dir() and not entry.is_symlink():
                shutil.copytree(entry, new / name, symlinks=True, copy_function=_link_or_copy)
            else:
                _link_or_copy(str(entry), str(new / name))


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
