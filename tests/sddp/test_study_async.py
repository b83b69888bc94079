"""Studies that are awaited: several at a time, callbacks in the loop's thread, and what cancelling leaves."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from builders.paths import EXAMPLES

import cobre
from cobre.errors import CobreError, ValidationError

EXAMPLE = EXAMPLES / "random-inflow"
ENDLESS = 100_000
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shm and tcp need Linux")


@pytest.fixture(scope="module")
def study():
    return cobre.Study(EXAMPLE)


@pytest.fixture(scope="module")
def expected(study):
    """Policies of two seeds."""
    return [study.train(iterations=6, seed=seed).policy_sha256 for seed in (1, 2)]


@pytest.fixture(scope="module")
def pools():
    made = [cobre.WorkerPool(2, backend, threads=1, warm=False) for backend in ("shm", "tcp")]
    yield made
    for pool in made:
        pool.close()


async def both(study, **options):
    names, values = list(options), zip(*options.values(), strict=True)
    runs = [
        study.train_async(iterations=6, seed=seed, **dict(zip(names, given, strict=True)))
        for seed, given in zip((1, 2), values, strict=True)
    ]
    return [result.policy_sha256 for result in await asyncio.gather(*runs)]


def test_two_studies_in_one_process_take_turns(study, expected):
    met = threading.Barrier(2)  # reached only if both are under way at the same time

    def meet(record):
        if record.iteration == 2:
            met.wait(120)

    async def main():
        # in the threads of the runs themselves, not in the loop's, which one of them would block
        return await asyncio.gather(
            *(asyncio.to_thread(study.train, iterations=6, seed=seed, on_iteration=meet) for seed in (1, 2))
        )

    assert [result.policy_sha256 for result in asyncio.run(main())] == expected
    assert asyncio.run(both(study, pool=(None, None))) == expected


def test_two_studies_on_two_pools_run_at_the_same_time(study, expected, pools):
    async def main():
        arrived = [asyncio.Event(), asyncio.Event()]

        def meeting(own):
            async def meet(record):
                arrived[own].set()
                await asyncio.wait_for(arrived[1 - own].wait(), 120)

            return meet

        return await both(study, pool=pools, on_iteration=(meeting(0), meeting(1)))

    assert asyncio.run(main()) == expected


def test_callbacks_run_in_the_thread_of_the_loop(study, pools):
    seen = []

    def note(name):
        def call(value):
            seen.append((name, threading.current_thread() is threading.main_thread()))

        return call

    async def main():
        trained = await study.train_async(
            iterations=2,
            pool=pools[0],
            on_start=note("start"),
            on_iteration=note("iteration"),
            on_trained=note("trained"),
        )
        return await study.simulate_async(
            trained, scenarios=10, pool=pools[0], on_start=note("start"), on_progress=note("progress")
        )

    assert asyncio.run(main()).scenarios == 10
    assert {here for _, here in seen} == {True}
    names = [name for name, _ in seen]
    assert names[:5] == ["start", "iteration", "iteration", "trained", "start"]
    assert set(names[5:]) == {"progress"}


def test_an_answer_stops_and_an_error_is_raised(study, pools):
    async def stop_at_two(record):
        await asyncio.sleep(0)
        return record.iteration == 2

    def fail(record):
        raise ZeroDivisionError(record.iteration)

    for pool in (pools[0], None):
        result = asyncio.run(study.train_async(iterations=6, pool=pool, on_iteration=stop_at_two))
        assert (result.iterations, result.termination_reason) == (2, "graceful_shutdown")
        with pytest.raises(ZeroDivisionError, match="1"):
            asyncio.run(study.train_async(iterations=6, pool=pool, on_iteration=fail))
    with pytest.raises(ValidationError, match="on_iteration must be a function, not 5"):
        asyncio.run(study.train_async(on_iteration=5))
    with pytest.raises(ValidationError, match="ranks must be a whole number"):
        asyncio.run(study.simulate_async(ranks=0))


@pytest.mark.parametrize("pooled", [True, False])
def test_cancelling_stops_at_a_boundary_with_a_checkpoint(study, pools, tmp_path, pooled):
    pool = pools[0] if pooled else None
    ended = []

    async def main():
        reached = asyncio.Event()

        def note(record):
            ended.append(record.iteration)
            if record.iteration == 3:
                reached.set()

        task = asyncio.create_task(
            study.train_async(iterations=ENDLESS, pool=pool, output=tmp_path, on_iteration=note)
        )
        await reached.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # being cancelled again does not make it return earlier
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not [thread for thread in threading.enumerate() if thread.name == "cobre-run"]
        return len(ended)

    asyncio.run(main())
    (checkpoint,) = tmp_path.glob("checkpoints/checkpoint-*")
    done = int(checkpoint.name.rpartition("-")[2])
    assert done >= 3
    again = study.train(iterations=done + 2, output=tmp_path, resume=True)
    assert again.iterations == done + 2
    assert again.policy_sha256 == study.train(iterations=done + 2).policy_sha256


def test_a_timeout_ends_the_run_before_it_is_raised(study, pools):
    async def main():
        hindered = asyncio.Event()  # never set: the run waits for its callback until it is cancelled

        async def wait_forever(record):
            await hindered.wait()

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(
                study.train_async(iterations=ENDLESS, pool=pools[0], on_iteration=wait_forever), 0.5
            )
        return (await study.train_async(iterations=1, pool=pools[0])).iterations

    assert asyncio.run(main()) == 1


def test_a_simulation_that_is_cancelled_can_be_gone_on_with(study, pools, tmp_path):
    trained = study.train(iterations=3)
    whole = study.simulate(trained, scenarios=300)

    async def main():
        first = asyncio.Event()
        task = asyncio.create_task(
            study.simulate_async(
                trained, scenarios=300, pool=pools[0], output=tmp_path, on_progress=lambda p: first.set()
            )
        )
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not (tmp_path / "simulation").exists()
    result = study.simulate(trained, scenarios=300, output=tmp_path, resume=True)
    assert result.scenarios_resumed > 0
    assert result.scenario_cost.tolist() == whole.scenario_cost.tolist()


def test_a_run_is_awaited_as_a_whole(study, pools, tmp_path):
    async def main():
        return await study.run_async(pool=pools[0], iterations=3, scenarios=20, output=tmp_path)

    run = asyncio.run(main())
    assert run.training.policy_sha256 == study.train(iterations=3).policy_sha256
    assert run.simulation.scenarios == 20


def test_a_second_run_on_one_pool_is_refused(study, pools):
    async def main():
        return await asyncio.gather(
            *(study.train_async(iterations=50, pool=pools[0]) for _ in range(2)), return_exceptions=True
        )

    outcomes = asyncio.run(main())
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["CobreError", "TrainingResult"]
    (refused,) = [outcome for outcome in outcomes if isinstance(outcome, CobreError)]
    assert refused.kind == "PoolInUse"
