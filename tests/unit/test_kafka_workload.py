"""The kafka workload: what clients are asked to do, their conversations, and how a history is made small."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from runs.history import Op
from tests.checker.history_language import history
from workloads.interface import CrashClient, Draft, MalformedReply, RpcError, Turn, Wait
from workloads.kafka.checker import check
from workloads.kafka.client import FinalPolls, KafkaClient, KafkaGenerator, Offsets
from workloads.kafka.shrink import shrink, smallest
from workloads.mixes import Keys

SECOND = 1_000_000_000
MANY = 40_000


def generator(
    seed: int = 1, key_count: int = 10, max_writes: int = 16, concurrency: int = 4
) -> KafkaGenerator:
    keys = Keys(key_count, max_writes, Random(f"{seed}/keys"))
    random, crashes = Random(f"{seed}/kafka"), Random(f"{seed}/crashes")
    return KafkaGenerator(keys, Offsets(), concurrency, random, crashes)


def drafts(count: int, interval_ns: int = 1_000_000, **options: int) -> list[Draft]:
    subject = generator(**options)
    return [subject.next(Turn(0, number * interval_ns)) for number in range(count)]


@pytest.fixture(scope="module")
def many() -> list[Draft]:
    return drafts(MANY)


def sent_ok(key: str, offset: int, value: int = 1, process: int = 0) -> Op:
    return Op(0, 0, "ok", process, "send", [["send", key, [offset, value]]])


def polled_ok(messages: dict[str, list[list[int]]], process: int = 0) -> Op:
    return Op(0, 0, "ok", process, "poll", [["poll", messages]])


def test_sends_and_polls_have_equal_odds_and_assigns_are_one_in_64(many: list[Draft]) -> None:
    counts = Counter(draft.f for draft in many)
    # A send to a full key is drawn anew, and may then be a poll: polls win a little.
    assert counts["send"] / MANY == pytest.approx(0.48, abs=0.01)
    assert counts["poll"] / MANY == pytest.approx(0.50, abs=0.01)
    assert counts["assign"] / MANY == pytest.approx(1 / 64, abs=0.003)


def test_a_key_is_drawn_twice_as_often_as_the_one_before() -> None:
    keys = Keys(10, 10**9, Random(1))
    counts = Counter(keys.draw()[0] for _ in range(MANY))
    for key in range(10):
        assert counts[key] == pytest.approx(MANY * 2**key / 1023, rel=0.1, abs=40)


def test_values_count_up_from_one_and_a_full_key_is_replaced_by_a_fresh_one(
    many: list[Draft],
) -> None:
    values: dict[int, list[int]] = {}
    for draft in many:
        if draft.f == "send":
            _, key, value = draft.value[0]
            values.setdefault(int(key), []).append(value)
    assert all(each == list(range(1, len(each) + 1)) for each in values.values())
    assert max(map(len, values.values())) == 16
    assert len(values) >= sum(map(len, values.values())) / 16 > 1000  # full keys were replaced
    assert max(values) < len(values) + 10  # fresh keys are numbered on


def test_micro_operations_have_the_form_of_histories(many: list[Draft]) -> None:
    """An assign takes the key that is drawn, and goes before it."""
    assert all(draft.value == [["poll"]] for draft in many if draft.f == "poll")
    assert all(draft.value is None for draft in many if draft.f == "crash")
    after = [pair for pair in pairwise(many) if (pair[0].f, pair[1].f) == ("assign", "send")]
    assert after
    assert all(assign.value == [send.value[0][1]] for assign, send in after)


def test_crashes_come_every_thirty_seconds_divided_by_the_concurrency() -> None:
    hour = drafts(72_000, interval_ns=SECOND // 20, concurrency=10)
    crashes = sum(draft.f == "crash" for draft in hour)
    assert crashes == pytest.approx(3600 / 3, rel=0.1)


def test_a_third_of_the_assigns_take_the_unseen_keys_too() -> None:
    subject = generator()
    for key in ("12", "3", "7"):
        subject.update(sent_ok(key, 5))
    subject.update(polled_ok({"3": [[0, 1], [5, 2]], "7": [[0, 1]]}))  # 3 is caught up
    assigns = [d for d in (subject.next(Turn(0, 1)) for _ in range(MANY)) if d.f == "assign"]
    unseen = [draft for draft in assigns if "unseen" in draft.extra]
    assert len(unseen) / len(assigns) == pytest.approx(1 / 3, abs=0.06)
    assert unseen[0].extra["unseen"] == {
        7: {"polled": 0, "sent": 5},
        12: {"polled": -1, "sent": 5},
    }
    assert list(unseen[0].extra["unseen"]) == [7, 12]
    assert set(unseen[0].value[:2]) == {"12", "7"}
    assert all(len(draft.value) == len(set(draft.value)) for draft in unseen)


def test_only_ok_operations_teach_anything() -> None:
    subject = generator()
    for outcome in ("info", "fail"):
        subject.update(Op(0, 0, outcome, 0, "send", [["send", "3", 1]]))
    assigns = [d for d in (subject.next(Turn(0, 1)) for _ in range(MANY)) if d.f == "assign"]
    assert not any(draft.extra for draft in assigns)


def test_neither_the_clock_nor_answers_change_the_order_of_sends_and_polls(
    many: list[Draft],
) -> None:
    def work(drafted: list[Draft]) -> list[Any]:
        return [(draft.f, draft.value) for draft in drafted if draft.f in ("send", "poll")][:1500]

    answered = generator()
    taught = []
    for number in range(3000):
        answered.update(sent_ok(str(number % 10), number))
        taught.append(answered.next(Turn(0, number * SECOND)))
    assert work(taught) == work(many)
    assert work(drafts(3000, interval_ns=1)) == work(many)


@pytest.fixture
def final() -> FinalPolls:
    """The end of a run."""
    offsets = Offsets()
    offsets.learn(sent_ok("10", 3))
    offsets.learn(polled_ok({"9": [[7, 1]]}))
    return FinalPolls(offsets, 2, Random(1))


def test_at_the_end_each_worker_reads_up_to_every_known_offset(final: FinalPolls) -> None:
    assert [final.next(Turn(0, 0)) for _ in range(3)] == [
        Draft("crash"),
        Draft("assign", ["9", "10"], {"seek-to-beginning?": True}),
        Draft("poll", [["poll"]], {"poll-ms": 1000}),
    ]
    final.update(polled_ok({"9": [[0, 1], [7, 2]]}, process=2))
    assert final.next(Turn(0, 0)) is not None
    final.update(polled_ok({"10": [[3, 1]]}, process=2))
    assert final.next(Turn(0, 0)) is None
    assert final.next(Turn(1, 0)) == Draft("crash")  # the other worker is not done
    assert FinalPolls(Offsets(), 1, Random(1)).next(Turn(0, 0)) is None  # nothing is known


def test_final_polls_are_a_fifth_of_a_second_apart_on_average(final: FinalPolls) -> None:
    now_ns, polls = 0, 0
    for _ in range(4000):
        drawn = final.next(Turn(0, now_ns))
        polls += isinstance(drawn, Draft) and drawn.f == "poll"
        now_ns = drawn.until_ns if isinstance(drawn, Wait) else now_ns
    assert now_ns / SECOND / polls == pytest.approx(0.2, rel=0.05)


# ---------------------------------------------------------------- the client


def perform(client: KafkaClient, f: str, value: Any, *answers: Any, **extra: Any) -> Any:
    """Play an operation against scripted answers: the requests that were made, and the completed value.

    An answer is a body without its type, or an exception.
    """
    steps = client.invoke(Op(0, 0, "invoke", 0, f, value, extra))
    requests, left = [], list(answers)
    try:
        rpc = next(steps)
        while True:
            assert rpc.dest == "n0"
            requests.append(rpc.body)
            answer = left.pop(0)
            if isinstance(answer, Exception):
                rpc = steps.throw(answer)
            else:
                rpc = steps.send({"type": f"{rpc.body['type']}_ok", "in_reply_to": 1} | answer)
    except StopIteration as done:
        assert not left
        return requests, done.value


A, AB = ("assign", ["a"]), ("assign", ["a", "b"])
POLL: tuple[Any, ...] = ("poll", [["poll"]])
FULL = RpcError(11, "temporarily-unavailable", "no", definite=True)


@pytest.mark.parametrize(
    ("before", "step", "requests", "value", "positions"),
    [
        (
            [],
            ("send", [["send", "k", 7]], {"offset": 3}),
            [{"type": "send", "key": "k", "msg": 7}],
            [["send", "k", [3, 7]]],
            {},
        ),
        (
            [(*AB, {"offsets": {"a": 4}})],
            (*POLL, {"msgs": {"a": [[4, "x"], [9, "y"]]}}, {}),
            [
                {"type": "poll", "offsets": {"a": 4, "b": 0}},
                {"type": "commit_offsets", "offsets": {"a": 9}},
            ],
            [["poll", {"a": [[4, "x"], [9, "y"]]}]],
            {"a": 10, "b": 0},
        ),
        # A poll never moves back, an empty list is nothing, and nothing is not committed.
        (
            [(*A, {"offsets": {"a": 4}})],
            (*POLL, {"msgs": {"a": [[1, "x"]]}}, {}),
            2,
            None,
            {"a": 4},
        ),
        ([(*A, {"offsets": {"a": 4}})], (*POLL, {"msgs": {"a": []}}), 1, None, {"a": 4}),
        ([], (*POLL, {"msgs": {}}), 1, [["poll", {}]], {}),
        # An assign keeps known positions, and forgets other keys.
        (
            [(*AB, {"offsets": {}}), (*POLL, {"msgs": {"a": [[5, "x"]]}}, {})],
            ("assign", ["a", "c", "d"], {"offsets": {"a": 2, "c": 8}}),
            [{"type": "list_committed_offsets", "keys": ["a", "c", "d"]}],
            ["a", "c", "d"],
            {"a": 6, "c": 8, "d": 0},
        ),
        # As in the real tool -1 is a committed offset.
        ([], (*A, {"offsets": {"a": -1}}), 1, ["a"], {"a": -1}),
    ],
)
def test_a_conversation_of_a_client(
    before: list[Any], step: tuple[Any, ...], requests: Any, value: Any, positions: dict[str, int]
) -> None:
    client = KafkaClient("n0")
    for each in before:
        perform(client, *each)
    made, completed = perform(client, *step)
    assert requests in (made, len(made))
    assert value in (completed, None)
    assert perform(client, *POLL, {"msgs": {}})[0][0]["offsets"] == positions


def test_a_rewind_asks_nobody_and_a_poll_moves_on_before_its_commit_fails() -> None:
    client = KafkaClient("n0")
    perform(client, *A, {"offsets": {"a": 4}})
    assert perform(client, "assign", ["a", "b"], **{"seek-to-beginning?": True}) == ([], ["a", "b"])
    with pytest.raises(RpcError):
        perform(client, *POLL, {"msgs": {"a": [[0, "x"]]}}, FULL)
    assert perform(client, *POLL, {"msgs": {}})[0][0]["offsets"] == {"a": 1, "b": 0}
    with pytest.raises(CrashClient):
        perform(client, "crash", None)


@pytest.mark.parametrize(
    ("f", "value", "reply", "why"),
    [
        ("send", [["send", "k", 1]], {"type": "poll_ok"}, 'the type is "poll_ok", not "send_ok"'),
        ("send", [["send", "k", 1]], {"type": "send_ok"}, "the field offset is missing"),
        (
            "send",
            [["send", "k", 1]],
            {"type": "send_ok", "offset": "3"},
            "not an integer of 0 or more",
        ),
        (
            "send",
            [["send", "k", 1]],
            {"type": "send_ok", "offset": True},
            "not an integer of 0 or more",
        ),
        (
            "send",
            [["send", "k", 1]],
            {"type": "send_ok", "offset": 1.0},
            "not an integer of 0 or more",
        ),
        (
            "send",
            [["send", "k", 1]],
            {"type": "send_ok", "offset": -1},
            "the field offset is -1, not",
        ),
        (
            "send",
            [["send", "k", 1]],
            {"type": "send_ok", "offset": 1, "x": 2},
            "nobody asked for the field x",
        ),
        ("poll", [["poll"]], {"type": "poll_ok", "msgs": []}, "not an object, key to"),
        (
            "poll",
            [["poll"]],
            {"type": "poll_ok", "msgs": {"k": {}}},
            "msgs.k is {}, not an array",
        ),
        (
            "poll",
            [["poll"]],
            {"type": "poll_ok", "msgs": {"k": [[1]]}},
            "msgs.k.0 is [1], not [offset, message]",
        ),
        ("poll", [["poll"]], {"type": "poll_ok", "msgs": {"k": [["1", 2]]}}, "[offset, message]"),
        ("poll", [["poll"]], {"type": "poll_ok", "msgs": {"k": [[-1, 2]]}}, "[offset, message]"),
        (
            "assign",
            ["k"],
            {"type": "list_committed_offsets_ok", "offsets": {"k": None}},
            "offsets.k is null, not",
        ),
    ],
)
def test_a_malformed_reply_is_told_with_what_was_expected(
    f: str, value: list[Any], reply: dict[str, Any], why: str
) -> None:
    with pytest.raises(MalformedReply) as caught:
        perform(KafkaClient("n0"), f, value, reply)
    assert why in caught.value.why
    assert caught.value.reply["type"] == reply["type"]
    assert f'"type": "{caught.value.request["type"]}_ok"' in caught.value.expected


# ---------------------------------------------------------------- shrinking


def sums(ops: Sequence[Op]) -> set[Any]:
    """A toy: the numbers 3 and 5 together are wrong, and so is any history without a 1."""
    values = {op.value for op in ops if op.type == "ok"}
    wrong = {"both"} if values >= {3, 5} else set()
    return wrong | (set() if 1 in values else {"no 1"})


def toy(*values: int) -> list[Op]:
    ops = history("\n".join(f"{value} crash ok" for value in values))
    for op in ops:
        op.value = op.process
    return ops


@pytest.mark.parametrize(
    ("values", "wanted", "left"),
    [([*range(1, 40)], lambda _: True, [1, 3, 5]), ([2, 3, 4, 5], "both".__eq__, [3, 5])],
)
def test_only_what_matters_stays(values: list[int], wanted: Any, left: list[int]) -> None:
    assert [op.value for op in shrink(toy(*values), sums, wanted=wanted) if op.type == "ok"] == left
    with pytest.raises(ValueError, match="nothing is wrong"):
        shrink(toy(1, 2), sums)


def test_no_poll_is_left_out_that_would_make_a_message_look_lost() -> None:
    ops = history("""
        0 send x=1@0
        0 send x=2@1
        0 send x=3@2
        0 send y=7@0
        0 send y=8@1
        1 poll x=1@0
        1 poll x=2@1
        1 poll x=3@2
        2 poll x=1@0,2@1,3@2
        1 poll y=8@1
        2 poll y=7@0,8@1
        2 poll x=3@2
    """)
    smaller = smallest(ops, ["nonmonotonic-poll"])
    assert check(smaller, {})["error-types"] == ("nonmonotonic-poll",)
    assert [(op.process, op.value) for op in smaller if op.f == "poll" and op.type == "ok"] == [
        (2, [["poll", {"x": [[2, 3]]}]]),
        (2, [["poll", {"x": [[2, 3]]}]]),
    ]
