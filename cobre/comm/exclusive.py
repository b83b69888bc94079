"""One collective at a time on a communicator, in nopython code (COM-41).

A kernel has one word of its state for this. Whoever enters a collective sets it and clears it on the way out;
who finds it set returns ``IN_USE`` and touches nothing, so that a second thread (or a signal handler) that
calls a collective meanwhile is refused and the first one goes on undisturbed.
"""

from __future__ import annotations

from typing import Any

from cobre.native import inner_kernel
from cobre.native.atomics import atomic_compare_exchange, atomic_store


@inner_kernel
def enter(state: Any, word: Any) -> Any:
    """Take the communicator; return whether nobody else has it."""
    return atomic_compare_exchange(state, word, 0, 1) == 0


@inner_kernel
def leave(state: Any, word: Any) -> None:
    """Give it back."""
    atomic_store(state, word, 0)
