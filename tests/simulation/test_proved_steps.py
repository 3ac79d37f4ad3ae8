"""What was proved of HeadLog (`specs.proof`) holds in simulated and explored runs of the code."""

from collections.abc import Mapping
from typing import Any

import pytest

from simulation import world as simulated
from simulation.exploration import stage
from simulation.exploration.campaign import explored
from simulation.exploration.setting import Setting
from simulation.judge import simulate
from simulation.refinement import Refinement
from simulation.scenario import Scenario
from specs.head_log.state import Ack, Answer, Head, State, view_of
from specs.head_log.views import fold
from specs.proof.checks import Walk
from specs.proof.evaluation import Structure
from specs.proof.head_log import F
from specs.proof.head_log_states import structure
from specs.proof.language import NO, Formulas
from specs.proof.models import MODELS

pytestmark = pytest.mark.simulation
STANDS_STILL = "a node that stands still"
BUSY: dict[str, Any] = {
    **{"nodes": 3, "rate": 60.0, "time_limit_s": 1.2, "nemesis_interval_s": 0.2},
    **{"seal_entries": 3, "segments_per_run": 2},
}
NODES: dict[str, Any] = {"strategy": "leaderless", "backlog": 0}
BUCKET: dict[str, Any] = {"strategy": "leaderless", "store": "bucket"}
CONDITIONS = {"conditions": True, "closes": 2}
SEEDS = [
    Scenario(2, **BUSY, nemesis=("loss", "duplicate", "fence")),
    Scenario(3, **BUSY, nemesis=("partition", "kill", "store")),
    Scenario.draw(7, NODES),
    Scenario.draw(36, BUCKET | {"compactions": 10, "rate": 100.0, "mixed": True, **CONDITIONS}),
    Scenario.draw(1, BUCKET),
]
MANY = [Scenario.draw(seed, fixed) for seed in range(2, 12) for fixed in (NODES, BUCKET)]
NODES_DO = {
    *("Send", "Try", "LateCommit", "Learnt", "Refresh", "HandOver", "Acked", "Reject", "Seal"),
    *("Fence", "Unfence", "Restart", "Claim", "CompactWrite", "CompactDelete", "CompactCursor"),
    *("Release", "GiveUp"),
}


class Proved(Refinement):
    """The oracle; each state has to be one of what was proved, and each change of it a step of that.

    What a run begins with, before there is a node, is a state without a step to it.
    """

    walk: Walk
    unlike: list[tuple[State, State]]
    broken: dict[str, None]
    _acks: frozenset[Ack] = frozenset()  # which the oracle compares, and does not keep

    @property
    def state(self) -> State:
        return self._state

    @state.setter
    def state(self, new: State) -> None:
        begun, old = bool(vars(self).get("_nodes")), getattr(self, "_state", new)
        self._state = new = new._replace(acked=new.acked | self._acks)
        if begun and old != new:
            self.broken |= dict.fromkeys(self.walk.broken_laws(self.seen(new, new)))
            if not self.walk.takes("Next", *map(self.seen, (old, new), (new, old))):
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
    return type("Watched", (Proved,), {"walk": walk, "unlike": [], "broken": {}})


@pytest.fixture
def proved(monkeypatch: pytest.MonkeyPatch) -> type[Proved]:
    found = watched({})
    monkeypatch.setattr(stage, "Refinement", found)
    monkeypatch.setattr(simulated, "Refinement", found)
    return found


def differences(states: list[tuple[State, State]]) -> list[Any]:
    """What differs in the first of these pairs."""
    each = (zip(State._fields, *pair, strict=True) for pair in states[:1])
    return [change for changes in each for change in changes if change[1] != change[2]]


def require_proved(found: type[Proved], *does: str) -> None:
    assert differences(found.unlike) == []
    assert found.broken == {}
    assert found.walk.steps.keys() >= {*does}


def test_every_step_of_a_seed_is_one_of_what_was_proved(proved: type[Proved]) -> None:
    assert [simulate(scenario).failures for scenario in SEEDS] == [[]] * len(SEEDS)
    require_proved(proved, *NODES_DO, "Named")


@pytest.mark.seeds
@pytest.mark.parametrize("scenario", MANY, ids=lambda scenario: f"{scenario.store}-{scenario.seed}")
def test_every_step_of_more_seeds_is_one_of_what_was_proved(
    scenario: Scenario, proved: type[Proved]
) -> None:
    # To look at a step takes a hundred times as long as the step.
    assert simulate(scenario, cpu_s_max=600.0).failures == []
    require_proved(proved, "Send", "LateCommit", "Acked")


@pytest.mark.parametrize(
    ("setting", "does"),
    [
        (Setting(sends=2, polls=0), ("Send", "Try", "LateCommit", "Acked", "HandOver")),
        (
            Setting(programs=True, before=2, sends=1, compactions=1),
            ("LateCommit", "Seal", "Claim", "CompactWrite", "CompactDelete", "CompactCursor"),
        ),
    ],
)
def test_every_step_of_every_schedule_is_one_of_what_was_proved(
    setting: Setting, does: tuple[str, ...], proved: type[Proved]
) -> None:
    assert explored(setting).failed is None
    require_proved(proved, *does)


@pytest.mark.parametrize(
    ("decision", "wrong", "seed"),
    [
        ("FirstOffset", lambda s, i, offset: offset + 1, 0),
        ("InEpoch", lambda s, b, epoch: F.made_in(b) != epoch, 0),
        ("HasOutcome", lambda s, n, b: NO, 0),
        ("CursorAfter", lambda s, n: s.cursor + 1, 3),
        ("RunOf", lambda s: NO, 3),
    ],
)
def test_what_was_proved_of_another_model_is_told(
    decision: str, wrong: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = watched({decision: wrong})
    monkeypatch.setattr(simulated, "Refinement", found)
    assert simulate(SEEDS[seed]).failures == []
    assert found.unlike
