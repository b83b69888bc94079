"""Starting bases of all forward passes and nodes, one status byte for each column and row.

A status is HiGHS's: 0 at the lower bound, 1 basic, 2 at the upper bound, 3 free at zero, 4 nonbasic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

HIGHEST_STATUS: Final = 4


@dataclass(frozen=True, eq=False)
class FirstBases:
    """Bases of the own LP engine that the first forward pass ended with, from which simulations start.

    Where an LP has several solutions, a simulation so goes the way that training went, along which the cuts
    were made. Cuts and bounds do not depend on them, nor does the digest of a policy.

    Attributes
    ----------
    node
        int64[bases]: positions of nodes, ascending.
    num_codes, num_cuts
        int64[bases]: variables of the LP, and cuts that are active in the basis.
    code
        uint32: of each variable of each basis, as :mod:`cobre.lp.engines.own.stored_bases` has them.
    cut
        int32: slots of the cuts of each basis, ascending.
    """

    node: NDArray[np.int64]
    num_codes: NDArray[np.int64]
    num_cuts: NDArray[np.int64]
    code: NDArray[np.uint32]
    cut: NDArray[np.int32]

    def check(self, nodes: int) -> None:
        """Check that the parts add up.

        Raises
        ------
        ValueError
            Otherwise.
        """
        for counts, entries in ((self.num_codes, self.code), (self.num_cuts, self.cut)):
            if len(counts) != len(self.node) or counts.min(initial=0) < 0 or counts.sum() != len(entries):
                raise ValueError("the parts of starting bases do not add up")
        if ((self.node < 0) | (self.node >= nodes)).any() or (np.diff(self.node) <= 0).any():
            raise ValueError("a starting basis is of an unknown node, or there twice")

    def by_node(self) -> Iterator[tuple[int, NDArray[np.uint32], NDArray[np.int32]]]:
        """Yield node, codes and cuts of each basis."""
        codes = np.split(self.code, np.cumsum(self.num_codes)[:-1])
        cuts = np.split(self.cut, np.cumsum(self.num_cuts)[:-1])
        for place, node in enumerate(self.node.tolist()):
            yield node, codes[place], cuts[place]

    def sha256(self) -> str:
        """Return a digest of all of it."""
        digest = hashlib.sha256()
        for part in (self.node, self.num_codes, self.num_cuts, self.code, self.cut):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    @classmethod
    def of(cls, parts: Iterable[tuple[int, NDArray[Any], NDArray[Any]]]) -> FirstBases:
        """Return the bases of these nodes, codes and cuts."""
        found = list(parts)
        return cls(
            np.array([node for node, _, _ in found], np.int64),
            np.array([len(codes) for _, codes, _ in found], np.int64),
            np.array([len(cuts) for _, _, cuts in found], np.int64),
            np.concatenate([np.zeros(0, np.uint32), *(codes for _, codes, _ in found)]).astype(np.uint32),
            np.concatenate([np.zeros(0, np.int32), *(cuts for _, _, cuts in found)]).astype(np.int32),
        )


@dataclass(frozen=True, eq=False)
class StartingBases:
    """Bases by (forward pass, node), one after the other.

    Attributes
    ----------
    forward_pass, node
        int64[bases]: whose basis it is; ascending by pass, then by position of the node.
    col_end, row_end
        int64[bases]: where its statuses end; those of the next one follow.
    col_status, row_status
        int8: the statuses.
    """

    forward_pass: NDArray[np.int64]
    node: NDArray[np.int64]
    col_end: NDArray[np.int64]
    row_end: NDArray[np.int64]
    col_status: NDArray[np.int8]
    row_status: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.forward_pass)

    def check(self, passes: int, nodes: int) -> None:
        """Check that every basis is of a pass and node that exist, and made of statuses.

        Raises
        ------
        ValueError
            Otherwise.
        """
        place = self.forward_pass * nodes + self.node
        if len(place) and not (
            self.node.min() >= 0
            and self.node.max() < nodes
            and self.forward_pass.min() >= 0
            and self.forward_pass.max() < passes
            and (np.diff(place) > 0).all()
        ):
            raise ValueError("a starting basis is of an unknown forward pass or node, or there twice")
        for what, status, end in (
            ("column", self.col_status, self.col_end),
            ("row", self.row_status, self.row_end),
        ):
            total = int(end[-1]) if len(end) else 0
            if len(end) != len(place) or (np.diff(end, prepend=0) < 0).any() or total != len(status):
                raise ValueError(f"the {what} statuses of starting bases do not add up")
            if len(status) and not 0 <= status.min() <= status.max() <= HIGHEST_STATUS:
                raise ValueError(f"a {what} status of a starting basis is outside 0 to {HIGHEST_STATUS}")

    @classmethod
    def gather(
        cls,
        num_cols: NDArray[np.int64],
        num_rows: NDArray[np.int64],
        col_status: NDArray[np.int8],
        row_status: NDArray[np.int8],
        first_pass: int = 0,
    ) -> StartingBases:
        """Return the bases of a store by (pass, node).

        Parameters
        ----------
        num_cols
            int64[nodes].
        num_rows
            int64[passes, nodes]: rows of the basis, cuts included; 0 where there is none.
        col_status, row_status
            int8[passes, nodes, width], used up to these numbers.
        first_pass
            The pass that the store begins with.
        """
        passes, nodes = np.nonzero(num_rows)
        cols, rows = num_cols[nodes], num_rows[passes, nodes]
        empty = np.zeros(0, np.int8)
        return cls(
            forward_pass=passes.astype(np.int64) + first_pass,
            node=nodes.astype(np.int64),
            col_end=np.cumsum(cols, dtype=np.int64),
            row_end=np.cumsum(rows, dtype=np.int64),
            col_status=np.concatenate(
                [empty, *(col_status[p, n, :c] for p, n, c in zip(passes, nodes, cols, strict=True))]
            ),
            row_status=np.concatenate(
                [empty, *(row_status[p, n, :r] for p, n, r in zip(passes, nodes, rows, strict=True))]
            ),
        )

    def spread(
        self,
        num_cols: NDArray[np.int64],
        num_rows: NDArray[np.int64],
        col_status: NDArray[np.int8],
        row_status: NDArray[np.int8],
        first_pass: int = 0,
    ) -> None:
        """Fill a store, as in :meth:`gather`, with the bases of its passes; the others are left out.

        Raises
        ------
        ValueError
            When a basis does not fit: it is of another LP.
        """
        num_rows[:] = 0
        starts = np.concatenate([[0], self.col_end]), np.concatenate([[0], self.row_end])
        for place in range(len(self)):
            own, node = int(self.forward_pass[place]) - first_pass, int(self.node[place])
            if not 0 <= own < len(num_rows):
                continue
            cols = self.col_status[starts[0][place] : self.col_end[place]]
            rows = self.row_status[starts[1][place] : self.row_end[place]]
            if node >= len(num_cols) or len(cols) != num_cols[node] or len(rows) > row_status.shape[2]:
                raise ValueError(
                    f"the starting basis of pass {own + first_pass} at node position {node} has {len(cols)} "
                    f"columns and {len(rows)} rows, which the study's LP does not have"
                )
            col_status[own, node, : len(cols)] = cols
            row_status[own, node, : len(rows)] = rows
            num_rows[own, node] = len(rows)
