"""Programs beside a bucket: what the simulator must find by itself, and what must pass."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from bench.loop import Deadlock
from simulation.bucket import Bucket, Request
from simulation.bucket_world import BucketWorld, world_of
from simulation.commands.simulate import simulate as command
from simulation.judge import Report, judged, simulate
from simulation.life import BUCKET, Life
from simulation.logs import LEADERLESS, PUBLISHED, REPAIRED
from simulation.loop import VirtualEventLoop, run_virtual
from simulation.oracle import Body
from simulation.programs import NodeOnBucket, Program
from simulation.scenario import Scenario
from simulation.shrink import Effort, smallest
from simulation.story import story_of, text_of
from specs.stories import STORIES
from tests.regressions import Regression, known_first, weaknesses

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
SOUND = (LEADERLESS, REPAIRED)
QUICK = 25  # the first of all seeds, which `make test` runs
MANY = range(0, 2000, 100)  # the first of each 100; CI runs one part a log, `make seeds` the others
QUIET = {"nemesis": (), "stalls": 0, "vacuums": 0, "refusal_code": 0, "store_late_s": 0.0}


def drawn(seed: int, **given: object) -> Scenario:
    return Scenario.draw(seed, {"store": BUCKET} | given)


def world(seed: int, **given: object) -> BucketWorld:
    """A run that has ended well."""
    made = world_of(drawn(seed, **given), keep=True)
    assert isinstance(made, BucketWorld)
    assert judged(made).failures == []
    return made


def invoke(*words: str) -> Result:
    return CliRunner().invoke(command, ("--programs", *words))


def first_failing(name: str, known: int = 0, /, **given: object) -> Report:
    """A run of the published protocol with an anomaly of this name.

    The seed that showed it last is tried first, then its neighbours before and after it.
    """
    for seed in known_first(known, 60):
        report = simulate(drawn(seed, strategy=PUBLISHED, **given))
        if name in report.names:
            return report
    raise AssertionError(f"no seed shows {name}")


def steps_of(journal: Sequence[Request], topic: str) -> Iterator[str]:
    """The requests on one topic of S3-Queue as the steps of `specs/TwoStepAssign`.

    What a reader or an initialiser asks is no step. A producer reads the counter, puts the pending entry
    (if there is one), changes the counter, puts its own entry. The compactor writes the compacted entry,
    deletes those below, and moves the cursor; the model lets it start with a step of its own.
    """
    own: set[str] = set()
    for request in journal:
        key = request.key.removeprefix(f"{topic}/")
        if request.outcome != "ok" or key == request.key:
            continue
        match request.kind, key.split("/"):
            case "update", ["meta", "sequence-counter"]:
                own.add(f"{orjson.loads(request.value)['pending']['offset']:020}")
                yield "CasCounter"
            case "put", ["index", offset]:
                yield from _entry_put(request, offset, own)
            case "delete", ["index", _]:
                yield "CompactDelete"
            case "update", ["meta", "compaction-cursor"]:
                yield "CompactCursor"


def _entry_put(request: Request, offset: str, own: set[str]) -> Iterator[str]:
    if orjson.loads(request.value)["type"] == "COMPACTED":
        yield from ("CompactStart", "CompactWrite")
    elif offset in own:
        own.discard(offset)
        yield "MaterialiseOwn"
    else:
        yield "MaterialisePending"


# ---------------------------------------------------------------- what must be found


def test_a_data_loss_shrinks_to_few_operations_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    polls = "simulation.bucket_world.BucketWorld._final_limit_s"
    monkeypatch.setattr(polls, 1.0)  # in vain
    given = {"nodes": 1, "clients": 1, "key_count": 1, "compactions": 3}
    small = smallest(first_failing("unreplicated", **QUIET, **given), effort=Effort(3, 3))
    assert "unreplicated" in small.names
    assert small.operations <= 20
    lost = world_of(small.scenario, keep=True)
    assert "gets from c" in "\n".join(text_of(story_of(lost, judged(lost), "unreplicated")))


def test_the_shrunk_story_is_the_counterexample_of_the_model() -> None:
    """TLC's way in `published-in-turn`, with one append less: the range of the run has two offsets."""
    lost = world_of(next(each for each in weaknesses() if each.anomaly == "unreplicated").scenario)
    assert isinstance(lost, BucketWorld)
    lost.store = Bucket(lost._wall_s)  # with a journal
    judged(lost)
    run = list(steps_of(lost.store.journal, "0"))
    story = next(each for each in STORIES if each.page == "two-step-assign")
    actions = (step["action"] for step in story.steps)
    steps = [action for action in actions if action not in ("Init", "ReadCounter")]
    steps.remove("MaterialisePending")  # the first one: nothing is pending before the first append
    del steps[2:5]
    assert run[: len(steps)] == steps


@pytest.mark.parametrize("regression", weaknesses(), ids=lambda each: each.anomaly)
def test_a_weakness_is_found_in_the_published_protocol_alone(regression: Regression) -> None:
    assert regression.anomaly in simulate(regression.scenario).names
    for log in SOUND:
        assert simulate(replace(regression.scenario, strategy=log)).failures == [], log


# ---------------------------------------------------------------- what must pass


@pytest.mark.parametrize("log", SOUND)
def test_a_sound_log_survives_what_is_drawn(log: str) -> None:
    for seed in range(QUICK):
        scenario = drawn(seed, strategy=log)
        assert simulate(scenario).failures == [], scenario.command()


@pytest.mark.parametrize(
    "first",
    [pytest.param(each, marks=pytest.mark.seeds if each else pytest.mark.slow) for each in MANY],
)
@pytest.mark.parametrize("log", SOUND)
def test_a_sound_log_survives_2000_seeds(log: str, first: int) -> None:
    for seed in range(first or QUICK, first + 100):
        scenario = drawn(seed, strategy=log)
        assert simulate(scenario).failures == [], scenario.command()


def test_runs_hold_what_the_rules_are_for() -> None:
    """The test of the test: faults happen, objects are compacted, tombstones are left, large values written."""
    runs = [
        world(
            seed, strategy=log, value_bytes=100, seal_entries=2, compactions=10, nemesis=("loss",)
        )
        for log in SOUND
        for seed in range(7)
    ]
    objects = [(key, found.value) for each in runs for key, found, _ in each.store.objects()]
    keys = " ".join(key for key, _ in objects)
    for part in ("run/", "segment/", "data/", "compacted/", "group/"):
        assert part in keys, part
    assert any(b"DELETED" in value for _, value in objects)
    bodies = [
        orjson.loads(line)["message"]["body"]
        for each in runs
        for line in each.journal_file.content.splitlines()
    ]
    assert {22, 0} <= {body.get("code") for body in bodies}
    assert {"get", "put", "create", "update", "delete", "list"} <= {each["type"] for each in bodies}


# ---------------------------------------------------------------- a group of consumers

CONSUMING = {"strategy": LEADERLESS, "members": 6, "time_limit_s": 4.0, "rate": 15.0, "auditors": 0}


def test_a_group_keeps_its_promises_and_hands_over() -> None:
    """Its members die, stand still and leave; keys change their owners, and records fail."""
    owners: dict[str, int] = {}
    for seed in range(3):
        made = world(seed, **CONSUMING, mixed=seed % 2 == 0, nemesis=("kill", "pause", "store"))
        held = {key: found.value for key, found, _ in made.store.objects()}
        roster = orjson.loads(held.get("group/members/members", b'{"keys":{}}'))
        owners |= {f"{seed} {key}": epoch for key, (epoch, *_) in roster["keys"].items()}
    assert max(owners.values()) > 2


# ---------------------------------------------------------------- one process


def test_a_process_that_reads_the_same_writes_the_same() -> None:
    """The inputs of a program of a run, read again by a new one at the same times."""
    made = world(3, strategy=LEADERLESS, mixed=False)
    name, heard = "n0", []
    for line in made.journal_file.content.splitlines():
        event = orjson.loads(line)
        message = event["message"]
        if event["type"] == "recv" and message["dest"] == name:
            heard.append(message)
    assert heard
    assert heard[0]["body"]["type"] == "init"
    said, again = (_played(heard) for _ in range(2))
    assert said == again != b""


def _played(heard: list[Body]) -> bytes:
    now, bucket = 0.0, Bucket(lambda: now)
    around = world(0, strategy=LEADERLESS, mixed=False)._around("n0", 1)
    around = around._replace(name=map(str, range(100)).__next__, trace=bucket.traced)
    program = Program("n0", 1, lambda: now, around)
    said = b""
    for number, message in enumerate(heard):
        now = number / 1000
        program.receive_all([orjson.dumps(message)], now)
        said += program.take()
    program.end()
    return said


def test_an_answer_for_a_former_life_reaches_nobody() -> None:
    first, second = (Life("n0", number, lambda: 0.0) for number in (1, 2))
    for life in (first, second):
        life.start(life.port.read, "head")
        life.pass_time(0.0)
    asked = [orjson.loads(life.take())["body"]["msg_id"] for life in (first, second)]
    assert asked[0] != asked[1]
    late = {"type": "get_ok", "in_reply_to": asked[0]}
    second.receive_all([orjson.dumps({"src": BUCKET, "dest": "n0", "body": late})], 0.1)
    assert second.port._open.keys() == {asked[1]}
    first.end()
    second.end()


def test_what_the_code_of_a_process_raises_its_step_raises() -> None:
    life = Life("n0", 1, lambda: 0.0)

    async def broken() -> None:
        raise ZeroDivisionError

    life.start(broken)
    with pytest.raises(ZeroDivisionError):
        life.pass_time(0.0)


def test_a_process_that_never_waits_is_stuck() -> None:
    loop = VirtualEventLoop()

    def again() -> None:
        loop.call_soon(again)

    again()
    with pytest.raises(Deadlock, match="without waiting"):
        loop.run(0.0)


def test_an_over_long_run_of_programs_is_a_failure_and_no_error() -> None:
    report = simulate(drawn(0, strategy=REPAIRED, time_limit_s=100.0), cpu_s_max=0.2)
    assert report.names[0] == "Progress"
    assert "no end after 0.2 s of CPU" in report.failures[0].text


def test_a_process_ends_while_another_runs() -> None:
    """The collector may end a process at any moment."""
    ended = VirtualEventLoop()
    ended.create_task(asyncio.sleep(1))
    ended.run(0.0)

    async def main(_loop: VirtualEventLoop) -> float:
        ended.end()
        await asyncio.sleep(100)
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 100


def test_a_bucket_carries_out_a_request_once() -> None:
    bucket = Bucket(lambda: 0.0)
    request = {"type": "create", "key": "k", "value": "v", "msg_id": 7}
    assert bucket.handle("n0", request) == bucket.handle("n0", request)
    assert bucket.handle("n1", request)["type"] == "error"
    assert bucket.requests == {"create": 2}


# ---------------------------------------------------------------- the command


def test_the_command_that_is_printed_runs_the_same() -> None:
    done = invoke("--seed", "7")
    words = done.output.splitlines()[1].split()
    assert words[:2] == ["./maelstrom", "simulate"]
    again = CliRunner().invoke(command, words[2:])
    assert done.exit_code == again.exit_code
    assert again.output.splitlines()[-1] == done.output.splitlines()[-1]


def test_a_range_counts_and_says_how_to_replay() -> None:
    given = ("--log", PUBLISHED, "--compactions", "10", "--jobs", "1")
    told = json.loads(invoke("--seeds", "3", "--keep-going", "--json", *given).stdout)
    assert (told["seeds"], told["strategies"]) == (3, {PUBLISHED: 3})
    assert "replay: ./maelstrom simulate --seed" in invoke("--seeds", "40", *given).output


@pytest.mark.parametrize(
    "words",
    [("--nemesis", "weather"), ("--log", "paper"), ("--workers", "0"), ("--strategy", "cas")],
)
def test_bad_arguments_are_refused(words: tuple[str, ...]) -> None:
    assert invoke(*words).exit_code == 2


def test_a_queue_is_no_log_of_nodes() -> None:
    done = CliRunner().invoke(command, ("--log", PUBLISHED))
    assert done.exit_code == 2
    assert "no s3-queue in lin-kv" in done.output


# ---------------------------------------------------------------- processes that differ


def test_a_mixed_run_has_programs_and_nodes_that_both_commit_and_give_times() -> None:
    kinds, folders = set[type[Life]](), set[str]()
    for seed in range(4):
        made = world(seed, strategy=LEADERLESS, mixed=True, nodes=4, rate=100.0, time_limit_s=1.0)
        kinds |= {type(life) for life in made._lives}
        folders |= {key.partition("/")[0] for key, _, _ in made.store.objects()}
        # The last value of an entry is its time.
        assert all(len(e) == 5 for e in orjson.loads(made.store.value_of("head") or b"")["entries"])
    assert kinds == {Program, NodeOnBucket}
    assert {"committed", "group", "segment", "head"} <= folders


def test_programs_of_a_crowd_hand_over_within_it() -> None:
    """In spite of lines that break off, or come twice."""
    counts, homes, kinds = Counter[str](), set[str](), Counter[str]()
    for seed in range(4):
        given = {
            "mixed": False,
            "nodes": 5,
            "rate": 60.0,
            "time_limit_s": 2.0,
            "nemesis": ("kill",),
        }
        made = world(seed, strategy=LEADERLESS, crowds=1 + seed % 2, **given)
        events = map(orjson.loads, made.journal_file.content.splitlines())
        kinds.update(event["message"]["body"]["type"] for event in events if "message" in event)
        for peers in (life.peers for life in made._lives if isinstance(life, Program)):
            if peers:
                counts += peers.counts
                homes.add(peers.node.partition("/")[2])
                assert "p@n0/2" not in peers
    assert counts["asked"] > 0
    assert counts["took"] > 0
    assert kinds["torn"] >= kinds["closed"] > 0
    assert homes == {"0", "1"}


def test_who_gives_the_size_of_a_tail_gets_processes_that_are_alike() -> None:
    assert not drawn(1, strategy=LEADERLESS, seal_entries=3).mixed
    assert drawn(1, strategy=LEADERLESS, seal_entries=3, mixed=True).mixed


def test_a_vacuum_whose_clock_is_ahead_deletes_no_value() -> None:
    """As on etcd, which tells no times. The law `DataReadable` sees the record come without its value."""
    given = {
        **{"strategy": LEADERLESS, "mixed": False, "ahead_s": 3_720.0, "value_bytes": 100},
        **{"vacuums": 10, "rate": 300.0, "latency_ms": 20, "nemesis": ()},
    }
    for seed in range(8):
        assert simulate(drawn(seed, **given)).failures == [], seed
