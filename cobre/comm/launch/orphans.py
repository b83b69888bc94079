"""Kill the processes that a launcher leaves behind when it is killed itself; a program, for Linux.

The launcher starts it before its ranks (:func:`cobre.comm.launch.processes.ending_orphans`), as a file and
not as a module: it needs the standard library only, and starts in a moment. It waits for the end of standard
input, which the launcher holds, and then kills whatever has the launcher's mark in its environment: also
what a wrapper has started, and what is stopped.
"""

import os
import signal
import sys
import time

_PATIENCE_S = 30.0
_PAUSE_S = 0.02


def kill_marked(mark: bytes) -> int:
    """Kill the processes that have ``NAME=value`` in their environment; return how many there were."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208  (pathlib takes longer to import than all the rest)
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                    if mark in file.read().split(b"\0"):
                        os.kill(int(name), signal.SIGKILL)
                        count += 1
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it has ended, or is another user's
    return count


def main(mark: str) -> None:
    """Wait for the launcher's end, then kill until nothing is found twice: a process may be forking."""
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _PATIENCE_S
    empty = 0
    while empty < 2 and time.monotonic() < deadline:
        empty = 0 if kill_marked(mark.encode()) else empty + 1
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1])
