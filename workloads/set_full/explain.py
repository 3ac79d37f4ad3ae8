"""The anomalies of a set's history in sentences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runs.edn import dumps
from runs.history import Op
from workloads.interface import Finding
from workloads.set_full.elements import Element, SetHistory, name_of


def explain_set(result: Mapping[Any, Any], history: Sequence[Op], add: str) -> list[Finding]:
    """A finding for lost elements, for duplicated ones, and for those that nobody added."""
    if not any(result[f"{name}-count"] for name in ("lost", "duplicated", "unexpected")):
        return []
    found = SetHistory.of(history, add)
    strict = result["valid?"] is False and not result["lost"]
    return [*_lost(found, result), *_duplicated(found, strict), *_unexpected(found, strict)]


def _lost(found: SetHistory, result: Mapping[Any, Any]) -> Iterator[Finding]:
    if not result["lost"]:
        return
    element = found.elements[name_of(result["lost"][0])]
    known, absent, present = element.known, element.last_absent, element.last_present
    assert known, "a lost element was known"
    assert absent, "a read lacks a lost element"
    how = "was acknowledged" if known.f != "read" else "had been read"
    later = f"after the read of process {present.process}" if present else "later"
    sentence = (
        f"Element {dumps(element.value)} is lost: it {how} at {known.time / 1e9:.3f} s, and no read that "
        f"was invoked {later} has it. The last of them is that of process {absent.process} at "
        f"{absent.time / 1e9:.3f} s."
    )
    yield Finding("lost", True, result["lost-count"], sentence, _witness(found, element))


def _witness(found: SetHistory, element: Element) -> list[Op]:
    """The add, when it was known, and the last reads with and without the element."""
    completion_of = {
        found.history[read.invoked_at].index: found.history[read.completed_at]
        for read in found.reads
    }
    reads = (completion_of[op.index] for op in (element.last_present, element.last_absent) if op)
    ops = [element.added, *([element.known] if element.known else []), *reads]
    chosen = {op.index: _reduced(op, element.value) for op in ops}
    return [chosen[index] for index in sorted(chosen)]


def _reduced(op: Op, element: Any) -> Op:
    """The operation; of a read's elements only the one that matters is left."""
    if op.f != "read" or op.type != "ok":
        return op
    wanted = name_of(element)
    left = [value for value in op.value or [] if name_of(value) == wanted]
    return Op(op.index, op.time, op.type, op.process, op.f, left, op.extra)


def _duplicated(found: SetHistory, strict: bool) -> Iterator[Finding]:
    for name, times in sorted(found.multiple.items(), key=lambda pair: -pair[1])[:1]:
        read = next(op for op in _reads(found) if Counter(map(name_of, op.value))[name] == times)
        value = next(each for each in read.value if name_of(each) == name)
        sentence = f"Process {read.process} read element {dumps(value)} {times} times at once."
        count = len(found.multiple)
        yield Finding("duplicated", strict, count, sentence, [_reduced(read, value)])


def _unexpected(found: SetHistory, strict: bool) -> Iterator[Finding]:
    for value in found.unexpected[:1]:
        read = next(op for op in _reads(found) if name_of(value) in set(map(name_of, op.value)))
        sentence = f"Process {read.process} read element {dumps(value)}, which nobody added."
        count = len(found.unexpected)
        yield Finding("unexpected", strict, count, sentence, [_reduced(read, value)])


def _reads(found: SetHistory) -> Iterator[Op]:
    """The reads that had something."""
    ops = (found.history[read.completed_at] for read in found.reads)
    return (op for op in ops if op.value)
