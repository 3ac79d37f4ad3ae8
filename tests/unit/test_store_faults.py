"""Store faults: answers are late, too late, or lost, and the store stays linearizable."""

from random import Random

import pytest

from bench.loop import VirtualLoop
from bench.nemesis.store_faults import MODES, WAITS_NS, StoreFault, StoreFaults

MS = 1_000_000


class Rig:
    """A fault that affects n0; when requests were executed and answered, in ms."""

    def __init__(self, mode, share=1.0, seed=1):
        self.loop = VirtualLoop()
        self.faults = StoreFaults(self.loop, Random(seed))
        self.faults.in_force = StoreFault(frozenset(["n0"]), mode, share)
        self.executed, self.answered = {}, {}

    def ask(self, number, client="n0"):
        def execute():
            assert number not in self.executed
            self.executed[number] = self.loop.now_ns() / MS
            return {"number": number}

        def answer(reply):
            assert reply["number"] in self.executed
            assert number not in self.answered
            self.answered[number] = self.loop.now_ns() / MS

        self.faults.serve(client, execute, answer)

    def ask_many(self, count=200):
        for number in range(count):
            self.ask(number)
        self.wait()

    def wait(self):
        over = []
        self.loop.call_at(10_000 * MS, over.append, True)
        self.loop.run_until(lambda: bool(over))


@pytest.mark.parametrize("mode", MODES)
def test_every_request_is_executed_once(mode):
    rig = Rig(mode)
    rig.ask_many()
    assert len(rig.executed) == 200


@pytest.mark.parametrize("mode", WAITS_NS)
def test_it_waits_before_it_is_executed_or_its_answer_waits(mode):
    rig = Rig(mode)
    rig.ask_many()
    shortest, longest = (wait_ns / MS for wait_ns in WAITS_NS[mode])
    assert len(rig.answered) == 200
    assert all(shortest <= at <= longest for at in rig.answered.values())
    at_once = [number for number, at in rig.executed.items() if at == 0]
    assert 60 < len(at_once) < 140
    others = rig.executed.keys() - set(at_once)
    assert all(rig.executed[number] == rig.answered[number] for number in others)


def test_abandoned_means_longer_than_a_node_waits_for_its_store():
    from leaderless.core.pace import Pace

    assert WAITS_NS["abandoned"][0] > Pace().store_timeout_s * 1e9 > WAITS_NS["late"][1]


def test_a_lost_answer_is_of_a_request_that_was_executed():
    rig = Rig("lost")
    rig.ask_many()
    assert len(rig.executed) == 200
    assert not rig.answered


def test_only_its_share_and_its_nodes_suffer():
    rig = Rig("lost", share=0.3)
    rig.ask_many()
    assert 110 < len(rig.answered) < 170
    rig.ask("other", client="n1")
    assert "other" in rig.answered


def test_what_waits_when_the_trouble_ends_still_comes():
    rig = Rig("abandoned")
    rig.ask(1)
    rig.faults.in_force = None
    rig.wait()
    assert list(rig.answered) == [1]
