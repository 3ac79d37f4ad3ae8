"""Programs that append one record after the other to one log, and reach nobody, take turns."""

from dataclasses import replace
from random import Random

import anyio

from leaderless.api.log import Log
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, ensure_log
from leaderless.hosting.surroundings import Surroundings
from leaderless.store.clouds import Cloud, Distant
from leaderless.store.memory import MemoryStore
from leaderless.store.wrapped import Counted
from simulation.loop import VirtualEventLoop, run_virtual

SECONDS = 4.0


def appends_and_requests(
    turn_commits: int, programs: int, pause_s: float = 0.0
) -> tuple[float, float]:
    """How many records programs append, and the requests of each, on a store 20 ms away."""

    async def main(loop: VirtualEventLoop) -> tuple[float, float]:
        counted, done = Counted(MemoryStore()), []
        await ensure_log(counted)

        async def program(name: int) -> None:
            store = Distant(counted, Cloud(0.018, 0.022), Random(name))
            bounds = bounds_of(store, 30.0, 5.0)
            bounds = bounds._replace(pace=replace(bounds.pace, turn_commits=turn_commits))
            log = Log(store, bounds, Surroundings(loop.time, lambda: f"{name}-{name:024x}"))
            async with running(log.host), beside(*log.chores):
                await anyio.sleep(name * pause_s / programs)
                while loop.time() < SECONDS:
                    done.append(await log.append("k", name))
                    await anyio.sleep(pause_s)

        async with anyio.create_task_group() as group:
            for name in range(programs):
                group.start_soon(program, name)
        assert sorted(done) == [*range(len(done))]
        return len(done), counted.requests.total() / len(done)

    return run_virtual(main)


def test_a_crowd_needs_a_third_of_the_requests_at_nearly_the_same_rate() -> None:
    (raced, of_races), (taken, of_turns) = (appends_and_requests(turn, 10) for turn in (0, 6))
    assert taken > 0.9 * raced
    assert 3 * of_turns < of_races


def test_nobody_stands_back_where_the_log_takes_more() -> None:
    assert appends_and_requests(6, 3, 0.2) == appends_and_requests(0, 3, 0.2)
