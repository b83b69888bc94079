"""What a check is, the list of all checks, and what they are written with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cobre.comm.contract import SUPPORTED_DTYPES, Communicator
from cobre.comm.faces import Face
from cobre.comm.registry import Traits

NO_TRAITS: Final = Traits()
FACE_NAMES: Final = ("python", "nopython")


@dataclass(frozen=True)
class Case:
    """What a check is run on.

    Attributes
    ----------
    face
        The face of the communicator under test.
    communicator
        The communicator itself.
    traits
        What its backend can do.
    directory
        A directory that all ranks can write to.
    sync
        Waits for all ranks by other means than the communicator.
    another, without
        Make one more communicator of these ranks; let the others make it without this rank.
    """

    face: Face
    communicator: Communicator | None = None
    traits: Traits = NO_TRAITS
    directory: Path | None = None
    sync: Callable[[], None] | None = None
    another: Callable[[], Communicator] | None = None
    without: Callable[[], None] | None = None

    @property
    def owner(self) -> Communicator:
        """The communicator."""
        assert self.communicator is not None, "this check needs a communicator"
        return self.communicator

    def meet(self) -> None:
        """Wait for all ranks by other means than the communicator."""
        if self.sync is not None:
            self.sync()

    def make(self) -> Communicator:
        """Make one more communicator of these ranks; once in a check."""
        assert self.another is not None, "this check needs to make a communicator"
        return self.another()

    def stay_away(self) -> None:
        """Do not take part in :meth:`make` of the other ranks, which fails."""
        assert self.without is not None, "this check needs to make a communicator"
        self.without()


@dataclass(frozen=True)
class Check:
    """One row of the conformance suite.

    Attributes
    ----------
    name
        The row's name.
    requirements
        Numbers of the requirements that it checks.
    run
        The check; fails by ``AssertionError``.
    smallest, largest
        Numbers of ranks it is for.
    needs
        Names of the :class:`Traits` it needs.
    timeout_s
        The timeout that the communicator has to have, ``None`` for any.
    victim
        The rank whose process ends in it, ``None`` when none does.
    both_faces
        Whether it is run for each face, or just once.
    """

    name: str
    requirements: tuple[str, ...]
    run: Callable[[Case], Any]
    smallest: int = 1
    largest: int = sys.maxsize
    needs: tuple[str, ...] = ()
    timeout_s: float | None = None
    victim: int | None = None
    both_faces: bool = True

    @property
    def id(self) -> str:
        """Name and requirements, for test reports."""
        return f"{self.name}[{','.join(self.requirements)}]"

    @property
    def faces(self) -> tuple[int, ...]:
        """The faces it is run for."""
        return (0, 1) if self.both_faces else (0,)

    def fits(self, size: int, traits: Traits) -> bool:
        """Whether it is for a communicator of this many ranks with these traits."""
        return self.smallest <= size <= self.largest and all(getattr(traits, name) for name in self.needs)

    def __call__(self, subject: Case | Face) -> Any:
        """Run the check on a case, or on no more than one face of a communicator."""
        return self.run(subject if isinstance(subject, Case) else Case(subject))


CHECKS: list[Check] = []
"""All checks, in the order in which they are defined."""

ALL_TRAITS: Final = Traits(**{field.name: True for field in fields(Traits)})


def checks_for(size: int, traits: Traits = ALL_TRAITS) -> list[Check]:
    """Return the checks for a communicator of this many ranks, those that end a process last."""
    fitting = [check for check in CHECKS if check.fits(size, traits)]
    return sorted(fitting, key=lambda check: check.victim is not None)


def check_named(name: str) -> Check:
    """Return the check of this name."""
    return next(check for check in CHECKS if check.name == name)


FaceFunction = Callable[[Face], Any]
CaseFunction = Callable[[Case], Any]


def face_check(
    *requirements: str, smallest: int = 1, largest: int = sys.maxsize, needs: Sequence[str] = ()
) -> Callable[[FaceFunction], FaceFunction]:
    """Register a check that needs no more than a face."""

    def register(function: FaceFunction) -> FaceFunction:
        def run(case: Case) -> Any:
            return function(case.face)

        CHECKS.append(Check(_name(function), requirements, run, smallest, largest, tuple(needs)))
        return function

    return register


def dtype_check(*requirements: str) -> Callable[[Callable[[Face, Any], None]], Callable[[Face, Any], None]]:
    """Register one check for each supported dtype."""

    def register(function: Callable[[Face, Any], None]) -> Callable[[Face, Any], None]:
        for dtype in SUPPORTED_DTYPES:

            def run(case: Case, dtype: Any = dtype) -> None:
                function(case.face, dtype)

            CHECKS.append(Check(f"{_name(function)}_{dtype.name}", requirements, run))
        return function

    return register


def case_check(*requirements: str, **options: Any) -> Callable[[CaseFunction], CaseFunction]:
    """Register a check that needs the communicator or its surroundings; options are those of a check."""

    def register(function: CaseFunction) -> CaseFunction:
        CHECKS.append(Check(_name(function), requirements, function, **options))
        return function

    return register


def _name(function: Callable[..., Any]) -> str:
    return function.__name__.removeprefix("_")


def expect(error: type[Exception], call: Callable[[], Any], **expected: Any) -> Exception:
    """Check that a call raises this error, with these fields; return it."""
    raised: Exception | None = None
    try:
        call()
    except error as found:
        raised = found
    assert raised is not None, f"no {error.__name__} was raised"
    for name, value in expected.items():
        assert getattr(raised, name) == value, f"{name} is {getattr(raised, name)!r}, not {value!r}"
    return raised


def same(actual: NDArray[Any], expected: Any) -> None:
    """Check that two arrays hold the same bytes."""
    wanted = np.asarray(expected, dtype=actual.dtype)
    assert actual.tobytes() == wanted.tobytes(), f"{actual!r} instead of {wanted!r}"


def offsets(counts: Sequence[int]) -> list[int]:
    """Return displacements of regions that follow each other."""
    return [sum(counts[:r]) for r in range(len(counts))]


def gather(face: Face, send: NDArray[Any], counts: Sequence[int]) -> NDArray[Any]:
    """Gather into a new array, region after region."""
    recv = np.full(sum(counts), 77, send.dtype)  # what no check gathers
    face.allgatherv(send, recv, counts, offsets(counts))
    return recv


def same_everywhere(face: Face, values: NDArray[Any]) -> None:
    """Check that all ranks hold the same values."""
    gathered = gather(face, values, [len(values)] * face.size)
    same(gathered, np.tile(values, face.size))
