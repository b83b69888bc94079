"""Running the whole suite on a backend, and its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cobre.comm.conformance.catalogue import ALL_TRAITS, FACE_NAMES, Check, checks_for
from cobre.comm.conformance.job import ConformanceJob, Progress, RankOutcome
from cobre.comm.conformance.targets import Target
from cobre.comm.registry import Traits


@dataclass(frozen=True)
class Row:
    """A check, a face, and how the ranks fared."""

    check: Check
    face: int
    outcomes: list[RankOutcome]

    @property
    def passed(self) -> bool:
        """Whether no rank found a fault."""
        return all(outcome.fault is None for outcome in self.outcomes)

    @property
    def seconds(self) -> float:
        """How long the slowest rank took."""
        return max(outcome.seconds for outcome in self.outcomes)

    @property
    def fault(self) -> str:
        """What went wrong, rank by rank."""
        faulty = [outcome for outcome in self.outcomes if outcome.fault is not None]
        return "\n".join(f"rank {outcome.rank}: {outcome.fault}" for outcome in faulty)


@dataclass
class Report:
    """Outcome of the suite on one backend with one number of ranks.

    Attributes
    ----------
    target
        Name of the backend.
    size
        Number of ranks.
    rows
        One for each check and face.
    """

    target: str
    size: int
    rows: list[Row] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every row passed."""
        return all(row.passed for row in self.rows)

    def row(self, name: str, face: int = 0) -> Row:
        """Return the row of a check and a face."""
        return next(row for row in self.rows if (row.check.name, row.face) == (name, face))

    def lines(self, *, only_faults: bool = False) -> list[str]:
        """Return the report as text."""
        shown = [row for row in self.rows if not (only_faults and row.passed)]
        lines = [
            f"{'passed' if row.passed else 'FAILED'}  {row.check.id} {FACE_NAMES[row.face]} "
            f"({row.seconds:.2f} s)" + ("" if row.passed else f"\n{row.fault}")
            for row in shown
        ]
        failures = sum(not row.passed for row in self.rows)
        lines.append(f"{self.target}, {self.size} ranks: {len(self.rows)} rows, {failures} failed")
        return lines


def run_conformance(
    target: Target | str,
    ranks: int,
    *,
    traits: Traits = ALL_TRAITS,
    checks: Sequence[Check] | None = None,
    on_row: Progress | None = None,
) -> Report:
    """Run the suite on a backend.

    Parameters
    ----------
    target
        The backend. For one of another package: ``"module:function"``, a function that takes a
        :class:`~cobre.comm.registry.Seat` and returns a communicator; it is imported in the
        processes of the ranks.
    ranks
        Number of ranks.
    traits
        For a ``"module:function"``: what the backend can do beyond the common contract.
    checks
        In place of all that fit.
    on_row
        Called after each row with the check, the face and the outcomes.

    Returns
    -------
    Report
        ``passed`` is true if the backend keeps the contract.
    """
    subject = Target(target, target, traits) if isinstance(target, str) else target
    report = Report(subject.name, ranks)
    with ConformanceJob(subject, ranks) as job:
        for check in checks_for(ranks, subject.traits) if checks is None else checks:
            for face in check.faces:
                outcomes = job.run(check, face)
                report.rows.append(Row(check, face, outcomes))
                if on_row is not None:
                    on_row(check, face, outcomes)
    return report
