"""A sample of the schedules that `./maelstrom explore` plays: their traces are behaviours of HeadLog."""

import random
from dataclasses import replace
from functools import partial

import pytest

from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context
from simulation.exploration.cluster import ExploredCluster
from simulation.exploration.setting import Setting
from specs.trace import validate
from specs.translation import Trace
from tests.specs.test_real_traces import Events, traced

SAMPLED = [
    (Setting(sends=3), 1),
    (Setting(sends=3, crashes=1, late=1), 2),
    (Setting(sends=3, lost=1, late=2, duplicates=1), 3),
]


def one_lane(events: Events, context: Context) -> LeaderlessLog:
    """A node as in the model, which has one writer; its steps go into the list."""
    limits = replace(context.options.limits, lanes=1)
    options = context.options._replace(limits=limits, durable_commits=False)
    return traced(context._replace(options=options), events)


@pytest.mark.tlc
@pytest.mark.slow
@pytest.mark.parametrize(("setting", "seed"), SAMPLED, ids=str)
def test_explored_traces_are_accepted(setting: Setting, seed: int) -> None:
    events: Events = []
    cluster = ExploredCluster(setting, partial(one_lane, events))
    chosen = random.Random(seed)
    while enabled := cluster.enabled():
        cluster.step(chosen.choice(enabled))
    assert {"Try", "Acked"} <= {event["step"] for event in events}
    shape = setting.options.shape
    assert shape
    judgement = validate(Trace(shape.segments_per_run, tuple(events)))
    assert judgement.accepted, judgement
