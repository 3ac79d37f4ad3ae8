"""The whole bench on a virtual clock, deterministic to the byte."""

from typing import Any

import orjson
import pytest

from bench.options import START_SPREAD_MS
from tests.scripted import ROOT, node_of
from tests.toy_log import MemoryLog, VirtualRun, answering, refusing, silent


@pytest.fixture(scope="module")
def good() -> VirtualRun:
    return VirtualRun(nemesis=("partition",), nemesis_interval_s=1.0, latency_ms=5)


def ops(run: VirtualRun, **wanted: str) -> list[Any]:
    return [op for op in run.history if all(getattr(op, k) == v for k, v in wanted.items())]


def test_a_right_node_is_valid_and_the_rate_is_kept(good: VirtualRun) -> None:
    assert (good.outcome.failure, good.check()["valid?"]) == (None, True)
    assert not any(host.alive for host in good.hosts.values())
    in_main_phase = [op for op in ops(good, type="invoke") if op.time < 10e9]
    assert 900 < len(in_main_phase) < 1100


def test_the_seed_decides_what_is_in_the_files(good: VirtualRun) -> None:
    again = VirtualRun(nemesis=("partition",), nemesis_interval_s=1.0, latency_ms=5)
    assert again.history_file.content == good.history_file.content
    assert again.journal_file.content == good.journal_file.content
    other = VirtualRun(nemesis=("partition",), nemesis_interval_s=1.0, latency_ms=5, seed="2")
    assert other.history_file.content != good.history_file.content


def test_operations_do_not_shift_when_faults_are_added() -> None:
    calm = VirtualRun()
    stormy = VirtualRun(nemesis=("partition",))
    assert [(op.f, op.value) for op in calm.history if op.type == "invoke"] == [
        (op.f, op.value) for op in stormy.history if op.type == "invoke"
    ]


def test_a_crashed_process_is_replaced_by_one_that_is_higher_by_the_concurrency(
    good: VirtualRun,
) -> None:
    crashed = ops(good, type="info", f="crash")
    later = {op.process for op in good.history}
    assert crashed
    assert all(op.process + 4 in later for op in crashed)


def test_every_worker_ends_with_crash_assign_from_zero_and_reading_everything(
    good: VirtualRun,
) -> None:
    assigns = [op for op in ops(good, type="ok", f="assign") if "seek-to-beginning?" in op.extra]
    assert sorted(op.process % 4 for op in assigns) == [0, 1, 2, 3]
    assert assigns[0].value == sorted(assigns[0].value, key=int)
    known = {key for op in ops(good, type="ok", f="send") for _, key, _ in op.value}
    assert known <= set(assigns[0].value)
    assert all(op.extra == {"poll-ms": 1000} for op in good.history if op.index > assigns[-1].index)


def test_recovery_comes_between_the_last_fault_and_the_final_phase(good: VirtualRun) -> None:
    healed = ops(good, f="stop-partition")[-1]
    final = next(op for op in good.history if op.index > healed.index and op.f == "crash")
    assert final.time - healed.time == 10_000_000_000


def test_the_journal_has_each_message_sent_and_received(good: VirtualRun) -> None:
    events = [orjson.loads(line) for line in good.journal_file.content.splitlines()]
    assert [event["id"] for event in events] == list(range(len(events)))
    sent = [event["message"]["id"] for event in events if event["type"] == "send"]
    assert sent == list(range(len(sent)))
    clients = good.network.clients
    assert len(events) == clients.sent + clients.received


def test_an_operation_without_an_answer_is_info_after_five_seconds() -> None:
    run = VirtualRun(answering(send=silent), time_limit_s=2)
    lost = ops(run, type="info", f="send")
    invoked = {op.process: op for op in ops(run, type="invoke", f="send")}
    assert lost
    assert all(op.extra["error"] == "net-timeout" for op in lost)
    assert {op.time - invoked[op.process].time for op in lost} == {5_000_000_000}


# Answers every tenth send after the client has given up; the message is stored by then.
LATE = answering(
    delay_s=lambda body: 5.5 if body["type"] == "send" and body["msg"] % 10 == 9 else 0.0
)


def test_a_node_that_answers_a_client_that_has_given_up_is_mute() -> None:
    run = VirtualRun(LATE, time_limit_s=20, rate=50.0, nodes=("n0",))
    assert run.outcome.failure is None
    (mute,) = ops(run, f="mute")
    assert mute.value["node"] == "n0"
    gave_up = next(op for op in run.history if op.extra.get("error") == "net-timeout")
    assert mute.time == gave_up.time + mute.value["after-ns"]
    assert 500_000_000 <= mute.value["after-ns"] < 501_000_000
    answered = [op.index for op in ops(run, type="ok") if op.f in ("send", "poll")]
    assert max(answered) < mute.index


def test_a_lenient_bench_drops_and_counts_late_answers() -> None:
    run = VirtualRun(LATE, time_limit_s=20, rate=50.0, lenient=True)
    assert not ops(run, f="mute")
    assert run.network.hearing.dropped["n0"] > 1
    assert run.check()["valid?"] is True


def test_a_client_stays_until_its_worker_goes_on_so_that_its_late_answer_is_only_lost() -> None:
    always_late = answering(delay_s=lambda body: 5.5 if body["type"] == "send" else 0.0)
    run = VirtualRun(always_late, time_limit_s=1, rate=100.0)
    assert len(ops(run, type="info", f="send")) == run.options.concurrency
    assert not ops(run, f="mute")
    assert run.check()["valid?"] is True


def test_a_definite_error_fails_and_another_leaves_the_outcome_open() -> None:
    run = VirtualRun(answering(send=refusing(11), poll=refusing(1000)), time_limit_s=2)
    sends = [op for op in ops(run, f="send") if op.type != "invoke"]
    polls = [op for op in ops(run, f="poll") if op.type != "invoke"]
    assert {op.type for op in sends} == {"fail"}
    assert sends[0].extra["error"] == ["temporarily-unavailable", "no"]
    assert {op.type for op in polls} == {"info"}
    assert polls[0].extra["error"] == ["unknown", "no"]


MALFORMED = answering(send=lambda *_: {"offset": "three"})


class NoInit(MemoryLog):
    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        return None if self.name == "n1" else super().answer(body)


@pytest.mark.parametrize(
    ("node", "parts", "after_s"),
    [
        (
            MALFORMED,
            [
                'the field offset is "three", not an integer of 0 or more',
                "<an integer of 0 or more>",
            ],
            pytest.approx(5, abs=5),
        ),
        (
            NoInit,
            [
                "Node n1 did not answer its init message within 10 s",
                "flush stdout after each line",
            ],
            pytest.approx(10),
        ),
    ],
)
def test_a_node_that_breaks_the_protocol_ends_the_run_with_a_report(
    node: type[MemoryLog], parts: list[str], after_s: Any
) -> None:
    run = VirtualRun(node)
    assert [part for part in parts if part not in str(run.outcome.failure)] == []
    assert run.virtual_s == after_s
    assert not any(host.alive for host in run.hosts.values())
    assert bool(run.history) is (node is MALFORMED)


class Forgetful(MemoryLog):
    """Hands out every log without its second message."""

    def poll(self, offsets: dict[str, Any]) -> dict[str, Any]:
        return {
            key: [pair for pair in pairs if pair[0] != 1] or pairs
            for key, pairs in super().poll(offsets).items()
        }


def test_a_wrong_node_is_invalid() -> None:
    result = VirtualRun(Forgetful).check()
    assert result["valid?"] is False
    assert "lost-write" in result["bad-error-types"]


RAFT = node_of(ROOT / "tests/nodes/lin_kv_raft.py")


def first_answer_s(**options: Any) -> float:
    run = VirtualRun(
        make=RAFT, workload="lin-kv", nodes=("n0", "n1", "n2"), time_limit_s=5, **options
    )
    assert run.check()["valid?"] is True
    return float(min(op.time for op in ops(run, type="ok")) / 1e9)


def test_a_first_vote_is_split_where_all_nodes_start_at_one_instant() -> None:
    assert first_answer_s(start_spread_ms=0) > 2


def test_a_first_vote_is_won_where_nodes_start_as_unevenly_as_on_the_real_tool() -> None:
    won = [
        first_answer_s(start_spread_ms=START_SPREAD_MS, seed=str(seed)) < 1 for seed in range(10)
    ]
    assert sum(won) >= 7


class Greeter(MemoryLog):
    """Greets the others as soon as it knows their names; a greeting must not come before `init`."""

    is_known = False

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        body = orjson.loads(line)["body"]
        if body["type"] == "hello":
            assert self.is_known
            greeted.add(self.name)
            return
        if body["type"] == "init":
            self.is_known = True
            for other in body["node_ids"]:
                hello = {"src": self.name, "dest": other, "body": {"type": "hello"}}
                self._answers.append((now, orjson.dumps(hello) + b"\n"))
        super().receive(line, now, arrived_at)


greeted: set[str] = set()


def test_no_node_hears_another_before_its_init() -> None:
    run = VirtualRun(Greeter, nodes=("n0", "n1", "n2"), start_spread_ms=1000, time_limit_s=1)
    assert run.outcome.failure is None
    assert greeted == {"n0", "n1", "n2"}
