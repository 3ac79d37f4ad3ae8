"""The first failure of a search: made small, told as a story, kept as a schedule that can be played again.

A failing setting is made smaller as long as a search of the smaller one fails by the same name. Then the
schedule is: events are left out one by one, and what is left is played to its end by taking the first enabled
event. A schedule is smaller when it has fewer faults, then when it deviates less from the first enabled
event, then when it is shorter.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from simulation.exploration.campaign import explored, systems_of
from simulation.exploration.explored import WAIT
from simulation.exploration.search import Event, Failed, Failing, System, exactly
from simulation.exploration.setting import Setting
from simulation.exploration.stage import name_of
from simulation.nodes import StrategyMaker
from simulation.story import MESSAGES_SHOWN, Story, is_init, story, text_of

CPU_S_SMALLER = 10.0  # for the search of a smaller setting
FAULTS = ("lose", "forget", "delay", "double", "kill", "orphan", "cut", "join", "wait")


class Failure(NamedTuple):
    """A schedule of a setting that fails."""

    setting: Setting
    failed: Failed


class Played(NamedTuple):
    """How a schedule went: its events, how many deviated from the first enabled one, its failure."""

    events: tuple[Event, ...]
    deviations: int
    failed: Failed | None

    @property
    def cost(self) -> tuple[int, int, int]:
        """Faults count most, then events out of turn."""
        return sum(map(is_fault, self.events)), self.deviations, len(self.events)


class Told(NamedTuple):
    """A schedule as it went: its events and messages in lines, a story for a picture, its failure."""

    lines: list[str]
    story: Story
    failed: Failed | None


def smallest(
    failure: Failure, make: StrategyMaker | None = None, cpu_s: float = CPU_S_SMALLER
) -> Failure:
    """A small failure of the same name: no smaller setting is found to fail within `cpu_s` seconds of CPU."""
    return shortened(_with_less(failure, make, cpu_s), make)


def shortened(failure: Failure, make: StrategyMaker | None = None) -> Failure:
    """A failure of the same name and setting, of which no single event can be left out."""
    setting, failed = failure
    best = played(setting, failed.schedule, make)
    # There is one schedule without a fault and a deviation, so none is shorter.
    while best.cost[:2] != (0, 0) and (better := _shorter(setting, best, failed.name, make)):
        best = better
    return Failure(setting, best.failed or failed)


def _with_less(failure: Failure, make: StrategyMaker | None, cpu_s: float) -> Failure:
    for smaller in failure.setting.smaller():
        found = explored(smaller, make, cpu_s).failed
        if found and found.name == failure.failed.name:
            return _with_less(Failure(smaller, found), make, cpu_s)
    return failure


def _shorter(
    setting: Setting, best: Played, name: str, make: StrategyMaker | None
) -> Played | None:
    for place in range(len(best.events)):
        left = best.events[:place] + best.events[place + 1 :]
        shorter = played(setting, left, make)
        if shorter.failed and shorter.failed.name == name and shorter.cost < best.cost:
            return shorter
    return None


def played(
    setting: Setting, schedule: Sequence[Event], make: StrategyMaker | None = None
) -> Played:
    """Play what is enabled of a schedule, then the first enabled event until the end; judge that."""
    system = systems_of(setting, make)()
    todo = list(schedule)
    events: list[Event] = []
    deviations, failed = 0, None
    try:
        while enabled := system.enabled():
            event = next((each for each in todo if each in enabled), enabled[0])
            if event in todo:
                todo.remove(event)
            deviations += event != enabled[0]
            events.append(event)
            system.step(event)
        system.judge()
    except Failing as failing:
        failed = Failed(failing.name, failing.text, tuple(events))
    return Played(tuple(events), deviations, failed)


def replayed(setting: Setting, schedule: Sequence[Event]) -> Told:
    """Play a schedule exactly, and judge its end if it reaches one.

    Raises `ValueError` for what cannot happen.
    """
    system = systems_of(setting, keep=True)()
    failed = followed(system, schedule)
    events = [event for event in system.journal if not is_init(event)]
    decisive = system.watch.message_id if failed and system.enabled() else None
    told = story(decisive, events, events[-2 * MESSAGES_SHOWN :])
    sent = (each["message"] for each in system.journal if each["type"] == "send")
    keys = {name_of(m["src"], m["dest"], m["body"]): m["body"].get("key") for m in sent}
    lines = [
        f"{number:3}. {said(event, keys.get(event.what))}"
        for number, event in enumerate(schedule, 1)
    ]
    lines += ["", *text_of(told)]
    return Told(lines, told, failed)


def followed(system: System, schedule: Sequence[Event]) -> Failed | None:
    """Play a schedule exactly on a new system, and judge its end if it reaches one; what failed.

    Raises `ValueError` for what cannot happen.
    """
    try:
        for _ in exactly(system, schedule):
            pass
        if not system.enabled():
            system.judge()
    except Failing as failing:
        return Failed(failing.name, failing.text, tuple(schedule))
    return None


def is_fault(event: Event) -> bool:
    """Whether an event is a fault, and not what time and messages do by themselves."""
    return event.kind in FAULTS and event != WAIT


def said(event: Event, key: str | None = None) -> str:
    """An event in words; `key` is what a request is about, in place of its number."""
    what = f"{event.what.rpartition(' ')[0]} {key}" if key else event.what
    return _SAID[event.kind].format(what)


_SAID = {
    "ask": "client {} makes its next request",
    "deliver": "{} arrives",
    "ring": "{} has read all lines of this moment, and does what is due",
    "wait": "time passes: {}",
    "lose": "{} is lost",
    "double": "{} is doubled",
    "kill": "{} is killed, and starts again",
    "cut": "{} is cut off from the other nodes",
    "join": "the node that was cut off is joined again{}",
    "end": "nothing happens any more{}",
    "carry": "{} is carried out, and answered",
    "forget": "{} is carried out, and its answer is lost",
    "delay": "{} times out, and is still on its way",
    "arrive": "{} is carried out, though nobody waits for it",
    "orphan": "{} dies, and what it asked is still on its way",
}


def write(file: Path, failure: Failure) -> None:
    """Keep a failing schedule."""
    failed = failure.failed
    content = {
        "setting": failure.setting.as_object(),
        "name": failed.name,
        "schedule": [list(event) for event in failed.schedule],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read(file: Path) -> tuple[Setting, list[Event]]:
    """A kept schedule of a setting. Raises `ValueError` when the file holds none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return Setting(**content["setting"]), [Event(*each) for each in content["schedule"]]
    except (KeyError, TypeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{file} holds no schedule: {error!r}") from None
