"""What a history says of its faults: when each was in force, and in a sentence what it did.

The nemesis writes two operations for each thing it does: what it means to do, then what it has done. A
fault counts from the first of its beginning to the last of its end, the widest time it can have been in
force.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.faults.names import deed_of
from runs.faults.texts import describe
from runs.history import NEMESIS, Op


@dataclass(slots=True)
class Injection:
    """A fault in force from `start_ns` to `end_ns` of the history's time; `text` says what it did."""

    fault: str
    start_ns: int
    end_ns: int
    text: str = ""


def injections(history: Sequence[Op]) -> list[Injection]:
    """The faults of a history in order of their beginnings; one that never ended lasts to the end."""
    found: list[_Course] = []
    latest: dict[str, _Course] = {}
    for op in history:
        deed = deed_of(op.f) if op.process == NEMESIS else None
        if not deed:
            continue
        course = latest.get(deed.fault)
        if deed.begins and (course is None or course.ends):
            latest[deed.fault] = course = _Course(deed.fault, op.time, [], [])
            found.append(course)
        if course and deed.begins:
            course.values.append(op.value)
        elif course and len(course.ends) < 2:  # what is ended again at the end of a run had ended
            course.ends.append(op.time)
    last_ns = history[-1].time if history else 0
    return [course.injection(last_ns) for course in found]


@dataclass(slots=True)
class _Course:
    fault: str
    start_ns: int
    values: list[Any]  # of the operations that began it
    ends: list[int]

    def injection(self, last_ns: int) -> Injection:
        end_ns = self.ends[-1] if self.ends else last_ns
        text = describe(self.fault, self.values[0], self.values[-1])
        return Injection(self.fault, self.start_ns, end_ns, text)
