"""What kafka clients are asked to do: odds, keys, assigns, crashes, the end."""

from collections import Counter
from random import Random

import pytest

from runs.history import Op
from workloads.interface import Draft, Wait
from workloads.kafka.generator import FinalPolls, KafkaGenerator, Offsets
from workloads.keys import Keys

SECOND = 1_000_000_000
MANY = 40_000


def generator(seed=1, key_count=10, max_writes=16, concurrency=4):
    keys = Keys(key_count, max_writes, Random(f"{seed}/keys"))
    random, crashes = Random(f"{seed}/kafka"), Random(f"{seed}/crashes")
    return KafkaGenerator(keys, Offsets(), concurrency, random, crashes)


def drafts(count, interval_ns=1_000_000, **options):
    subject = generator(**options)
    return [subject.next(0, number * interval_ns) for number in range(count)]


@pytest.fixture(scope="module")
def many():
    return drafts(MANY)


def sent_ok(key, offset, value=1, process=0):
    return Op(0, 0, "ok", process, "send", [["send", key, [offset, value]]])


def polled_ok(messages, process=0):
    return Op(0, 0, "ok", process, "poll", [["poll", messages]])


def test_sends_and_polls_have_equal_odds_and_assigns_are_one_in_64(many):
    counts = Counter(draft.f for draft in many)
    # A send to a full key is drawn anew, and may then be a poll: polls win a little.
    assert counts["send"] / MANY == pytest.approx(0.48, abs=0.01)
    assert counts["poll"] / MANY == pytest.approx(0.50, abs=0.01)
    assert counts["assign"] / MANY == pytest.approx(1 / 64, abs=0.003)


def test_a_key_is_drawn_twice_as_often_as_the_one_before():
    keys = Keys(10, 10**9, Random(1))
    counts = Counter(keys.draw()[0] for _ in range(MANY))
    for key in range(10):
        assert counts[key] == pytest.approx(MANY * 2**key / 1023, rel=0.1, abs=40)


def test_values_count_up_from_one_and_a_full_key_is_replaced_by_a_fresh_one(many):
    values = {}
    for draft in many:
        if draft.f == "send":
            _, key, value = draft.value[0]
            values.setdefault(int(key), []).append(value)
    assert all(each == list(range(1, len(each) + 1)) for each in values.values())
    assert max(map(len, values.values())) == 16
    assert len(values) >= sum(map(len, values.values())) / 16 > 1000  # full keys were replaced
    assert max(values) < len(values) + 10  # fresh keys are numbered on


def test_micro_operations_have_the_form_of_histories(many):
    assert all(draft.value == [["poll"]] for draft in many if draft.f == "poll")
    assert all(draft.value is None for draft in many if draft.f == "crash")
    assert all(isinstance(draft.value[0], str) for draft in many if draft.f == "assign")


def test_an_assign_takes_the_key_that_is_drawn_and_goes_before_it(many):
    followed = [
        (draft.value, many[index + 1])
        for index, draft in enumerate(many[:-1])
        if draft.f == "assign" and many[index + 1].f == "send"
    ]
    assert followed
    assert all(keys == [send.value[0][1]] for keys, send in followed)


def test_crashes_come_every_thirty_seconds_divided_by_the_concurrency():
    hour = drafts(360_000, interval_ns=SECOND // 100, concurrency=10)
    crashes = sum(draft.f == "crash" for draft in hour)
    assert crashes == pytest.approx(3600 / 3, rel=0.1)


def test_a_third_of_the_assigns_take_the_unseen_keys_too():
    subject = generator()
    for key in ("12", "3", "7"):
        subject.update(sent_ok(key, 5))
    subject.update(polled_ok({"3": [[0, 1], [5, 2]], "7": [[0, 1]]}))  # 3 is caught up
    assigns = [d for d in (subject.next(0, 1) for _ in range(MANY)) if d.f == "assign"]
    unseen = [draft for draft in assigns if "unseen" in draft.extra]
    assert len(unseen) / len(assigns) == pytest.approx(1 / 3, abs=0.06)
    assert unseen[0].extra["unseen"] == {
        7: {"polled": 0, "sent": 5},
        12: {"polled": -1, "sent": 5},
    }
    assert list(unseen[0].extra["unseen"]) == [7, 12]
    assert set(unseen[0].value[:2]) == {"12", "7"}
    assert all(len(draft.value) == len(set(draft.value)) for draft in unseen)


def test_only_ok_operations_teach_anything():
    subject = generator()
    for outcome in ("info", "fail"):
        subject.update(Op(0, 0, outcome, 0, "send", [["send", "3", 1]]))
    assigns = [d for d in (subject.next(0, 1) for _ in range(MANY)) if d.f == "assign"]
    assert not any(draft.extra for draft in assigns)


def test_the_same_seed_gives_the_same_operations(many):
    assert drafts(2000) == many[:2000]
    assert drafts(2000, seed=2) != many[:2000]


def test_neither_the_clock_nor_answers_change_the_order_of_sends_and_polls(many):
    def work(drafted):
        return [(draft.f, draft.value) for draft in drafted if draft.f in ("send", "poll")][:1500]

    answered = generator()
    taught = []
    for number in range(3000):
        answered.update(sent_ok(str(number % 10), number))
        taught.append(answered.next(0, number * SECOND))
    assert work(taught) == work(many)
    assert work(drafts(3000, interval_ns=1)) == work(many)


class TestFinalPolls:
    """The end of a run."""

    @pytest.fixture
    def final(self):
        offsets = Offsets()
        offsets.learn(sent_ok("10", 3))
        offsets.learn(polled_ok({"9": [[7, 1]]}))
        return FinalPolls(offsets, 2, Random(1))

    def test_crash_assign_poll(self, final):
        assert [final.next(1, 0) for _ in range(3)] == [
            Draft("crash"),
            Draft("assign", ["9", "10"], {"seek-to-beginning?": True}),
            Draft("poll", [["poll"]], {"poll-ms": 1000}),
        ]

    def test_polls_are_a_fifth_of_a_second_apart_on_average(self, final):
        now_ns, polls = 0, 0
        for _ in range(4000):
            match final.next(0, now_ns):
                case Draft(f="poll"):
                    polls += 1
                case Wait(until_ns):
                    now_ns = until_ns
        assert now_ns / SECOND / polls == pytest.approx(0.2, rel=0.05)

    def test_a_worker_is_done_when_it_has_read_up_to_every_known_offset(self, final):
        final.next(0, 0)
        final.update(polled_ok({"9": [[0, 1], [7, 2]]}, process=2))
        assert final.next(0, 0) is not None
        final.update(polled_ok({"10": [[3, 1]]}, process=2))
        assert final.next(0, 0) is None
        assert final.next(1, 0) == Draft("crash")  # the other worker is not

    def test_with_nothing_known_there_is_nothing_to_do(self):
        assert FinalPolls(Offsets(), 1, Random(1)).next(0, 0) is None
