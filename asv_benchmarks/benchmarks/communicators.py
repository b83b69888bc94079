"""How fast each collective is on each backend, and how soon ranks are up."""

from __future__ import annotations

RANKS = 2
BACKENDS = ("local", "shm", "tcp", "mpi-openmpi")
SMALL, LARGE = 64, 1 << 20  # bytes of one rank
CALLS = {SMALL: 2000, LARGE: 60}


def measure(backend: str, kind: str, size: int) -> float:
    """Return microseconds per call; asv skips what is not installed."""
    from cobre.comm.bench.measure import measure_communicator
    from cobre.comm.bench.plan import Operation
    from cobre.comm.bench.run import bench_columns, measure_column

    operation = Operation(f"{kind} {size}", kind, size // 8, CALLS[size])
    if backend == "local":
        from cobre.comm.local import LocalCommunicator

        with LocalCommunicator() as communicator:
            return measure_communicator(communicator, [operation], 5, backend)[0].median_us
    if backend not in bench_columns():
        raise NotImplementedError(f"{backend} is not here")
    return measure_column(backend, RANKS, [operation], 5)[0].median_us


class Collectives:
    """One collective on two ranks, called from nopython code; the local one on its single rank."""

    params = (BACKENDS, ("allgatherv", "allreduce"), (SMALL, LARGE))
    param_names = ("backend", "collective", "bytes")
    unit = "us"
    timeout = 600

    def track_microseconds(self, backend: str, collective: str, size: int) -> float:
        return measure(backend, collective, size)


class Barrier:
    """A barrier of two ranks, called from nopython code."""

    params = (BACKENDS,)
    param_names = ("backend",)
    unit = "us"
    timeout = 600

    def track_microseconds(self, backend: str) -> float:
        return measure(backend, "barrier", SMALL)


class Launch:
    """Starting two ranks, joining them, and ending them."""

    params = (("shm", "tcp"),)
    param_names = ("backend",)
    number = 1
    warmup_time = 0.0
    timeout = 300

    def setup(self, backend: str) -> None:
        from cobre.comm.bench.run import bench_columns

        if backend not in bench_columns():
            raise NotImplementedError(f"{backend} is not here")
        self.time_launch(backend)

    def time_launch(self, backend: str) -> None:
        import operator

        from cobre.comm.launch import launch

        # a function of the standard library, since ranks cannot import this module
        launch(operator.attrgetter("rank"), RANKS, backend=backend, timeout_s=200)
