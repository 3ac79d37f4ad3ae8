"""Which requests a node may leave unanswered after it stood still: only those that it must take for too old."""

import pytest

from bench.loop import VirtualLoop
from simulation.hosts import NS, NodeSession, SimulatedHost
from simulation.watch import Watch
from tests.passing import pass_until

READING_NS = 1_000_000


class Silent(NodeSession):
    """A node that never answers."""

    deadline: float | None = None

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        pass

    def pass_time(self, now: float) -> None:
        pass

    def take(self) -> bytes:
        return b""


def unanswered(
    *stops: tuple[float, float], asked_s: float, other_line_s: float | None = None
) -> bool:
    """Whether a node that stood still in these spans owes an answer to a request that came at `asked_s`.

    `other_line_s`: when it gets another line.
    """
    loop = VirtualLoop()
    watch = Watch(["n0"], loop.now_ns, lambda _: True, oracle=None)
    host = SimulatedHost(
        "n0",
        loop,
        lambda _name, _line: None,
        lambda _name, _start: Silent(),
        lambda: READING_NS,
        on_resume=watch.resumed,
        on_old_lines=watch.reads_old_lines,
    )
    host.start()

    def ask() -> None:
        watch.message("recv", "c1", "n0", {"type": "echo", "msg_id": 1}, b'{"id":1,')
        host.deliver(b"a line")

    for begin_s, end_s in stops:
        loop.call_at(int(begin_s * NS), host.pause)
        loop.call_at(int(end_s * NS), host.resume)
    loop.call_at(int(asked_s * NS), ask)
    if other_line_s is not None:
        loop.call_at(int(other_line_s * NS), host.deliver, b"another")
    pass_until(loop, 20 * NS)
    return bool(watch.unanswered)


def test_a_node_owes_an_answer_to_what_it_read_at_once() -> None:
    assert unanswered(asked_s=1.0)


@pytest.mark.parametrize("asked_s", [0.1, 1.0, 1.9])
def test_a_short_stop_excuses_nothing(asked_s: float) -> None:
    assert unanswered((0.0, 2.0), asked_s=asked_s)


@pytest.mark.parametrize("asked_s", [0.1, 4.9])
def test_after_a_long_stop_whatever_came_in_it_may_be_too_old(asked_s: float) -> None:
    assert not unanswered((0.0, 5.0), asked_s=asked_s)


def test_a_line_that_is_read_together_with_old_ones_may_be_as_old() -> None:
    before_the_read_s = 5.0 + READING_NS / NS / 2
    assert not unanswered((0.0, 5.0), asked_s=before_the_read_s, other_line_s=4.9)


def test_what_is_read_after_a_long_stop_is_fresh() -> None:
    assert unanswered((0.0, 5.0), asked_s=5.1)


def test_a_long_stop_excuses_what_was_read_before_it() -> None:
    assert not unanswered((1.0, 6.0), asked_s=0.5)


def test_a_request_stays_as_old_as_the_stop_in_which_it_came() -> None:
    """Seed 10561: two stops, each too short to excuse anything, and no answer in between."""
    stops = (1.27, 1.78), (1.83, 6.16)
    assert not unanswered(*stops, asked_s=1.76)
    assert unanswered(*stops, asked_s=1.80)  # between them: it was read at once
    assert unanswered(*stops, asked_s=2.0)
