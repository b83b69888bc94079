"""Bases of the own engine in the arrays of a checkpoint, from which they are taken back where they fit.

A basis is one whole number for each variable of the LP, ``4 place + kind``, and the cuts active in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobre.lp.engines.own.core import AT_KINK, IN_SEGMENT, BasisStore
from cobre.lp.reduction.form import CoreForm

_PREFIX = "own_basis_"
_KINDS = 4
_LARGEST_SHORT_CODE = 2**16 - 1


class PackedBases(NamedTuple):
    """Bases by (forward pass, node), one after the other.

    Attributes
    ----------
    forward_pass, node
        int64[bases]: whose basis it is.
    num_codes, num_cuts
        int64[bases]: variables of its LP, and cuts that are active in it.
    code
        uint16, or uint32 where a variable has thousands of kinks: of each variable of each basis.
    cut
        int32: slots in the pool of the cuts of each basis, ascending.
    """

    forward_pass: NDArray[np.int64]
    node: NDArray[np.int64]
    num_codes: NDArray[np.int64]
    num_cuts: NDArray[np.int64]
    code: NDArray[Any]
    cut: NDArray[np.int32]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return them by the names that they have in a checkpoint."""
        return {_PREFIX + name: array for name, array in self._asdict().items()}

    @classmethod
    def among(cls, arrays: Mapping[str, NDArray[Any]]) -> PackedBases | None:
        """Return the bases among the arrays of a checkpoint; ``None`` where they are not there."""
        names = [_PREFIX + name for name in cls._fields]
        return cls(*(arrays[name] for name in names)) if all(name in arrays for name in names) else None

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
        if len(self.forward_pass) != len(self.node) or ((self.node < 0) | (self.node >= nodes)).any():
            raise ValueError("a starting basis is of an unknown forward pass or node")


class BasisPacker:
    """Packs the bases in the store of a rank, and unpacks them.

    Parameters
    ----------
    forms
        By node; ``None`` where another engine solves its LPs.
    """

    def __init__(self, store: BasisStore, forms: Sequence[CoreForm | None]) -> None:
        self._store = store
        none = np.zeros(0, np.int32)
        # By variable: the place of the last entry of its pieces, which is no kink.
        self._last = [none if form is None else np.diff(form.piece_start) - 1 for form in forms]
        largest = _KINDS * max((int(last.max(initial=0)) for last in self._last), default=0)
        self._code_type = np.uint16 if largest <= _LARGEST_SHORT_CODE else np.uint32

    def pack(self, first_pass: int, passes: int) -> PackedBases:
        """Return the bases of the store's first ``passes`` passes, which count from ``first_pass``."""
        store, nodes = self._store, len(self._last)
        keys = np.flatnonzero(store.known[: passes * nodes])
        return PackedBases(
            forward_pass=keys // nodes + first_pass,
            node=keys % nodes,
            num_codes=np.array([len(self._last[key % nodes]) for key in keys], np.int64),
            num_cuts=store.num_cuts[keys],
            code=_joined((self._codes(int(key)) for key in keys), self._code_type),
            cut=_joined((store.cut[key, : store.num_cuts[key]] for key in keys), np.int32),
        )

    def _codes(self, key: int) -> NDArray[Any]:
        count = len(self._last[key % len(self._last)])
        codes = _KINDS * self._store.place[key, :count] + self._store.kind[key, :count]
        return codes.astype(self._code_type)

    def unpack(self, packed: PackedBases, first_pass: int, passes: int, pool_cuts: NDArray[np.int64]) -> None:
        """Store the bases of this rank's passes; those of nodes that another engine solves are left out.

        Parameters
        ----------
        first_pass, passes
            First pass of this rank, and how many it has.
        pool_cuts
            Cuts of each node.

        Raises
        ------
        ValueError
            When a basis does not fit: it is of another LP.
        """
        store, nodes = self._store, len(self._last)
        packed.check(nodes)
        store.known[:] = 0
        codes = np.split(packed.code.astype(np.int64), np.cumsum(packed.num_codes)[:-1])
        cuts = np.split(packed.cut, np.cumsum(packed.num_cuts)[:-1])
        own = packed.forward_pass - first_pass
        for basis in np.flatnonzero((own >= 0) & (own < passes)):
            node, active = int(packed.node[basis]), cuts[basis]
            last = self._last[node]
            if not len(last):
                continue
            place, kind = np.divmod(codes[basis], _KINDS)
            most = min(int(pool_cuts[node]), store.cut.shape[1])
            if (
                not _is_basis(place, kind, last)
                or len(active) > most
                or not _are_slots(active, pool_cuts[node])
            ):
                raise ValueError(
                    f"the starting basis of pass {packed.forward_pass[basis]} at node position {node} is of "
                    "another LP than the study's"
                )
            key = int(own[basis]) * nodes + node
            store.place[key, : len(last)], store.kind[key, : len(last)] = place, kind
            store.num_cuts[key], store.cut[key, : len(active)] = len(active), active
            store.known[key] = 1

    def unpack_as_start(
        self,
        bases: Iterable[tuple[int, NDArray[Any], NDArray[Any]]],
        pool_cuts: NDArray[np.int64],
    ) -> None:
        """Store bases (node, codes, cuts) as those of all passes; what is of another LP is left out."""
        store, nodes = self._store, len(self._last)
        store.known[:] = 0
        for node, codes, active in bases:
            last = self._last[node]
            place, kind = np.divmod(codes.astype(np.int64), _KINDS)
            fits = len(last) and _is_basis(place, kind, last) and len(active) <= store.cut.shape[1]
            if fits and _are_slots(active, pool_cuts[node]):
                keys = slice(node, None, nodes)
                store.place[keys, : len(last)], store.kind[keys, : len(last)] = place, kind
                store.num_cuts[keys], store.cut[keys, : len(active)] = len(active), active
                store.known[keys] = 1


def _joined(parts: Iterable[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts])


def _is_basis(place: NDArray[np.int64], kind: NDArray[np.int64], last: NDArray[np.int32]) -> bool:
    """Whether every variable lies in a segment or at a finite kink that it has."""
    if len(place) != len(last) or (kind > AT_KINK).any():
        return False
    return bool((place >= np.where(kind == IN_SEGMENT, 0, 1)).all() and (place < last).all())


def _are_slots(cuts: NDArray[np.int32], count: int) -> bool:
    """Whether these are slots of a pool of ``count`` cuts, ascending."""
    return bool((np.diff(cuts, prepend=-1) > 0).all() and (cuts < count).all())
