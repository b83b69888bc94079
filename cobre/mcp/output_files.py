"""Results below the root: a directory that was checked, by its descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobre.errors import CobreError, Problem, ValidationError
from cobre.mcp.paths import Root, by_descriptor, clean

if TYPE_CHECKING:
    from cobre.policy import Policy
    from cobre.results import Results


@contextmanager
def checked_directory(root: Root, place: str) -> Iterator[Path]:
    """Give a path to a directory whose tree holds no link that leads out of the root, for the block."""
    with root.directory(place) as descriptor:
        root.check_tree(place, descriptor)
        path = by_descriptor(descriptor)
        try:
            yield path
        except CobreError as error:
            raise _named(error, str(path), clean(place)) from error


def _named(error: CobreError, path: str, place: str) -> CobreError:
    """Return an error that names a directory as the client does."""

    def text(value: Any) -> Any:
        return value.replace(path, place) if isinstance(value, str) else value

    problems = [
        Problem(
            problem.kind,
            text(problem.message),
            {name: text(value) for name, value in problem.context.items()},
            text(problem.suggestion),
        )
        for problem in error.problems
    ]
    return ValidationError(problems, source=place)


@contextmanager
def opened_results(root: Root, place: str) -> Iterator[Results]:
    """Give the results in an output directory for the block.

    Raises
    ------
    CobreError
        When there are none.
    """
    from cobre.results import load

    with checked_directory(root, place) as path:
        yield load(path)


def policy_place(root: Root, place: str) -> str:
    """Return the directory of a policy, where an output directory may be given.

    Raises
    ------
    CobreError
        Kind ``NoPolicy``.
    """
    for candidate in (clean(place), clean(f"{place}/policy")):
        if any(root.exists(f"{candidate}/{name}") for name in ("manifest.json", "manifest.bin")):
            return candidate
    raise CobreError(
        "NoPolicy",
        f"there is no policy in {place!r}",
        {"path": place},
        "give the output directory of a training, its folder policy, or a checkpoint",
    )


@contextmanager
def opened_policy(root: Root, place: str, case: str | None) -> Iterator[Policy]:
    """Give the policy of an output directory, or in a policy directory, for the block."""
    from cobre.mcp.case_files import load_case
    from cobre.policy.loading import load_policy

    with checked_directory(root, policy_place(root, place)) as path:
        yield load_policy(path, None if case is None else load_case(root, case))
