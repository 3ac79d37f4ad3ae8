"""What was proved of HeadLog (`specs.proof`) holds in simulated and explored runs of the code."""

from collections.abc import Mapping
from typing import Any

import pytest

from simulation.bucket_world import world_of
from simulation.exploration import stage
from simulation.exploration.campaign import explored
from simulation.exploration.setting import Setting
from simulation.judge import judged
from simulation.refinement import Refinement
from simulation.scenario import Scenario
from specs.proof.checks import Walk
from specs.proof.evaluation import Structure
from specs.proof.head_log import F
from specs.proof.head_log_states import structure
from specs.proof.language import NO, Formulas
from specs.proof.models import MODELS
from specs.second.head_log_state import Ack, Answer, Head, State, view_of
from specs.second.head_log_views import fold

pytestmark = pytest.mark.simulation
STANDS_STILL = "a node that stands still"
BUSY: dict[str, Any] = {
    **{"nodes": 3, "rate": 60.0, "time_limit_s": 1.5, "nemesis_interval_s": 0.2},
    **{
        "seal_entries": 3,
        "segments_per_run": 16,
    },  # the oracle does not follow the cursor of compaction
}
SEEDS = [
    Scenario(2, **BUSY, nemesis=("loss", "duplicate", "fence")),
    Scenario(3, **BUSY, nemesis=("partition", "kill", "store")),
]


class Proved(Refinement):
    """The oracle; each change of its state has to be a step of what was proved."""

    walk: Walk
    _acks: frozenset[Ack] = frozenset()  # which the oracle compares, and does not keep
    unlike: list[tuple[State, State]]

    @property
    def state(self) -> State:
        return self._state

    @state.setter
    def state(self, new: State) -> None:
        old = getattr(self, "_state", new)
        new = new._replace(acked=new.acked | self._acks)
        self._state = new
        if old != new and not self.walk.takes("Next", *map(self.seen, (old, new), (new, old))):
            self.unlike.append((old, new))

    def _acked(self, node: str, fields: Mapping[str, Any]) -> None:
        batch = self._own(node, "Acked", fields["id"])
        self._acks |= {self._model.ack_of(view_of(self.state, node), batch)}
        super()._acked(node, fields)

    def seen(self, s: State, other: State) -> Structure:
        """A state as the proof has it, with messages that the oracle does not keep.

        Any head that a node comes to know has been answered by somebody. A segment is written by a node that
        has read its tail, and may know more by now. A cas from another head than the present one has no effect.
        """
        learnt = [(n, h) for each in (s, other) for n, h in each.known.items()]
        log = max(s.log, other.log, key=len)
        answers = {Answer(n, None, h, 0, log[: h.end]) for n, h in learnt}  # type: ignore[arg-type]
        known, view = s.known, s.view
        for base in {*other.segments} ^ {*s.segments}:
            segment = (other.segments | s.segments)[base]
            h = Head("open", 0, None, base, segment)
            h = next((h for h in self._tails_of(base) if h.tail == segment), h)
            known, view = known.put(STANDS_STILL, h), view.put(STANDS_STILL, fold(log[: h.end]))
        inflight = frozenset(r for r in s.inflight if r.before == s.head)
        told = s._replace(answers=frozenset(answers), inflight=inflight, known=known, view=view)
        return structure(self._model, told)

    def _tails_of(self, base: int) -> list[Head]:
        return [h for h in (*self._heads.values(), *self._made.values()) if h.base == base]


def watched(instead: Formulas) -> type[Proved]:
    walk = Walk(MODELS["HeadLog"].patched(instead))
    return type("Watched", (Proved,), {"walk": walk, "unlike": []})


@pytest.fixture
def proved(monkeypatch: pytest.MonkeyPatch) -> type[Proved]:
    found = watched({})
    monkeypatch.setattr(stage, "Refinement", found)
    return found


def differences(states: list[tuple[State, State]]) -> list[Any]:
    """What differs in the first of these pairs."""
    each = (zip(State._fields, *pair, strict=True) for pair in states[:1])
    return [change for changes in each for change in changes if change[1] != change[2]]


def run(scenario: Scenario, proved: type[Proved]) -> Proved:
    world = world_of(scenario)
    oracle = world.refinement = proved()
    assert judged(world).failures == []
    return oracle


def test_every_step_of_a_seed_is_one_of_what_was_proved(proved: type[Proved]) -> None:
    for scenario in SEEDS:
        oracle = run(scenario, proved)
        assert differences(proved.unlike) == []
        assert proved.walk.broken_laws(oracle.seen(oracle.state, oracle.state)) == []
    assert proved.walk.steps.keys() >= {
        *("Send", "Try", "LateCommit", "Learnt", "Refresh", "HandOver", "Acked", "Reject"),
        *("Seal", "Fence", "Unfence", "Restart"),
    }


def test_every_step_of_every_schedule_is_one_of_what_was_proved(proved: type[Proved]) -> None:
    assert explored(Setting(sends=2, polls=0)).failed is None
    assert differences(proved.unlike) == []
    assert proved.walk.steps.total() > 200


@pytest.mark.parametrize(
    ("decision", "wrong"),
    [
        ("FirstOffset", lambda s, i, offset: offset + 1),
        ("InEpoch", lambda s, b, epoch: F.made_in(b) != epoch),
        ("HasOutcome", lambda s, n, b: NO),
    ],
)
def test_what_was_proved_of_another_model_is_told(decision: str, wrong: Any) -> None:
    found = watched({decision: wrong})
    run(SEEDS[0], found)
    assert found.unlike
