"""Starting bases of all forward passes and nodes, one status byte for each column and row.

A status is HiGHS's: 0 at the lower bound, 1 basic, 2 at the upper bound, 3 free at zero, 4 nonbasic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

HIGHEST_STATUS: Final = 4


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
