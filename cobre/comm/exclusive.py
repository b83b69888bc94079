"""One collective at a time on a communicator, in nopython code (COM-41).

One word of the kernel's state is the flag. A collective sets it on entry and clears it on exit; a call that
finds it set returns ``IN_USE`` and changes nothing. So a second thread (or a signal handler) that calls a
collective meanwhile is refused, and the first continues undisturbed.
"""

from __future__ import annotations

from typing import Any

from cobre.native import inner_kernel
from cobre.native.atomics import atomic_compare_exchange, atomic_store


@inner_kernel
def enter(state: Any, word: Any) -> Any:
    """Take the communicator; return whether it was free."""
    return atomic_compare_exchange(state, word, 0, 1) == 0


@inner_kernel
def leave(state: Any, word: Any) -> None:
    """Give it back."""
    atomic_store(state, word, 0)
