"""The digest of a policy: every bit of every cut, and nothing that depends on time or place."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_FORMAT = b"cobre-policy-1"


def policy_digest(
    *,
    stage_ids: Sequence[int],
    node_ids: Sequence[int] | None,
    states: int,
    forward_passes: int,
    intercepts: Sequence[NDArray[np.float64]],
    slopes: Sequence[NDArray[np.float64]],
    active: Sequence[NDArray[np.bool_]] | None = None,
) -> str:
    """Return the SHA-256 over the cuts of all nodes.

    Parameters
    ----------
    node_ids
        ``None`` on a chain.
    intercepts, slopes
        Of each node float64[cuts] and float64[cuts, states].
    active
        Of each node bool[cuts]; a policy whose cuts are all active has the digest it has without.

    Examples
    --------
    >>> shape = {"stage_ids": [0], "node_ids": None, "states": 1, "forward_passes": 1}
    >>> one = policy_digest(**shape, intercepts=[np.array([1.0])], slopes=[np.array([[-2.0]])])
    >>> other = policy_digest(**shape, intercepts=[np.nextafter([1.0], 2.0)], slopes=[np.array([[-2.0]])])
    >>> len(one), one == other
    (64, False)
    """
    digest = hashlib.sha256(_FORMAT)
    digest.update(struct.pack("<qqq", len(stage_ids), states, forward_passes))
    if node_ids is not None:
        digest.update(np.array(node_ids, "<i8").tobytes())
    for node, stage_id in enumerate(stage_ids):
        digest.update(struct.pack("<qq", stage_id, len(intercepts[node])))
        digest.update(np.ascontiguousarray(intercepts[node], "<f8").tobytes())
        digest.update(np.ascontiguousarray(slopes[node], "<f8").tobytes())
    if active is not None and not all(flags.all() for flags in active):
        for flags in active:
            digest.update(np.packbits(flags).tobytes())
    return digest.hexdigest()
