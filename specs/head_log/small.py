"""HeadLog in a small configuration of the manifest: all steps of a state, and whether TLC has the same.

`state_of` reads a state as TLC writes it. There a node or key without something has a zero or `None`; here it
is left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import chain, product
from typing import Any

from specs.head_log.state import (
    TOMBSTONE,
    Ack,
    Answer,
    Batch,
    HandOver,
    Head,
    Request,
    State,
    Task,
    Worker,
)
from specs.head_log.steps import HeadLog
from specs.head_log.views import TOKEN, Block, Content, Entry, Id, Key, Map, Node, View
from specs.manifest import Configuration

CACHED = 4096
ABSENT = "None"


class Small(HeadLog):
    """HeadLog with all its steps."""

    raises = False

    def steps(self, s: State) -> Iterator[tuple[str, State]]:
        """The next-state relation, with the names that TLC gives."""
        for name, states in chain(self._of_all(s), *(self._of(s, n) for n in self.nodes)):
            yield from ((name, after) for after in states)

    def _of_all(self, s: State) -> Iterator[tuple[str, Iterable[State]]]:
        """Steps of no node, and the states after each; none: not possible."""
        yield from (("LateCommit", self.late_commit_of(s, request)) for request in s.inflight)
        yield from (("Fence", self.fence(s)), ("Unfence", self.unfence(s)))
        yield from [("RaiseEpoch", self.raise_epoch(s))] if self.raises else ()

    def _of(self, s: State, n: Node) -> Iterator[tuple[str, Iterable[State]]]:
        """Steps of a node, as above."""
        w, epochs = self.writer_of(s, n), range(s.head.epoch + 1)
        own = next((each for each in s.batch if each[0] == n), w)
        groups = [*self.groups(s, n)] if self.may_cas(s, n) else []
        yield from (("Send", self.send_in(s, w, c, e)) for c in self.contents for e in epochs)
        yield from (("Commit", self.commit_group(s, n, group)) for group in groups)
        if self.max_in_flight > 0:
            yield from (("Unknown", self.unknown_group(s, n, group)) for group in groups)
        yield from (("HandOver", self.hand_over(s, own, m)) for m in self.nodes)
        yield from (("Answered", self.answered_with(s, n, a)) for a in s.answers if a.to == n)
        yield from (("Acked", self.acknowledge(s, own)), ("Reject", self.reject(s, own)))
        if sum(s.incarnation.values()) < self.max_incarnation:
            yield "Restart", self.restart_as(s, n, s.incarnation.get(n, 0) + 1)
        # What stands behind a condition, TLC calls as the whole relation.
        yield from [("Next", self.abandon(s, own))] if self.may_abandon else ()
        yield from [("Next", self.give_up(s, n))] if self.may_give_up else ()
        alone = {
            **{"Conflict": self.conflict, "Seal": self.seal, "Refresh": self.refresh},
            **{"Claim": self.claim, "CompactWrite": self.compact_write},
            **{"CompactDelete": self.compact_delete, "CompactCursor": self.compact_cursor},
            "Release": self.release,
        }
        yield from ((name, action(s, n)) for name, action in alone.items())


_INSTEAD: Mapping[str, Mapping[str, Any]] = {  # of specs/HeadLog/HeadLogProperties.tla
    "SmallAndLarge": {"limit_of": lambda m, n: 1 if n == m.nodes[0] else m.tail_limit},
    "NoShape": {"shape_of": lambda _, n, h: h.limit},
    "FullForItself": {"is_full": lambda m, n, h: len(h.tail) >= m.limit_of(n)},
}


def small_model(configuration: Configuration) -> Small:
    """The model with the constants and decisions of a configuration.

    Raises:
        KeyError: a decision is not written here.
    """
    parts: dict[str, Any] = {"raises": configuration.specification == "RaisesSpec"}
    for new in configuration.replace.values():
        parts |= _INSTEAD[new]
    # `MaxSeq` in the manifest is `max_seq` here.
    given = {
        re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower(): text
        for name, text in configuration.constants.items()
    }
    values = {field.name: _constant(given[field.name]) for field in fields(HeadLog)}
    values["contents"] = _CONTENTS[given["contents"]](values["keys"])
    made: Small = type("Small", (Small,), parts)(**values)
    return made


def _constant(text: str) -> Any:
    if text.startswith("{"):
        return tuple(re.findall(r"\w+", text))
    return int(text) if text.isdigit() else text == "TRUE"


def _one_each(keys: Sequence[Key]) -> frozenset[Content]:
    """A message of each key."""
    return frozenset({Content(Map(dict.fromkeys(keys, 1)), Map())})


def _mixed(keys: Sequence[Key]) -> frozenset[Content]:
    """Two messages of some keys, and a committed offset of each."""
    chosen = (_counts(dict(zip(keys, n, strict=True))) for n in product((0, 2), repeat=len(keys)))
    return frozenset(Content(two, two) for two in chosen if two)


def _conditional(keys: Sequence[Key]) -> frozenset[Content]:
    """At the beginning; behind one message, with the first token; with the next one; the end of the key."""
    return frozenset(
        Content(_counts({key: n}), _counts({f"{TOKEN}{key}": token}), _given({key: end}))
        for n, token, end in ((1, 0, 0), (1, 1, 1), (1, 2, -1), (0, 3, -1))
        for key in keys
    )


_CONTENTS = {"<- OneEach": _one_each, "<- Mixed": _mixed, "<- Conditional": _conditional}


def unlike(
    configuration: Configuration,
) -> Callable[[Any, Iterable[tuple[str, Any]]], Iterator[str]]:
    """In which steps this model and TLC differ, in a state that TLC has found, with all its steps."""
    model = small_model(configuration)

    def differences(at: Any, steps: Iterable[tuple[str, Any]]) -> Iterator[str]:
        found = {(name, state_of(after)) for name, after in steps}
        own = {*model.steps(state_of(at))}
        yield from (f"Python has no such {name}" for name, _ in found - own)
        yield from (f"TLC has no such {name}" for name, _ in own - found)

    return differences


# ---------------------------------------------------------------- as TLC writes a state


@lru_cache(CACHED)
def state_of(v: Map[str, Any]) -> State:
    """The state of these variables."""
    batch, life, task = _there(v["batch"]), v["incarnation"], v["task"]
    return State(
        head=_head(v["head"]),
        segments=Map(
            {
                b: TOMBSTONE if held == "Tombstone" else _entries(held)
                for b, held in _there(v["segments"]).items()
            }
        ),
        runs=Map({b: _view(run) for b, run in _there(v["runs"]).items()}),
        task=Task(_or_none(task["owner"]), task["epoch"], task["cursor"]),
        log=_entries(v["log"]),
        incarnation=_counts(life),
        seq=Map({(n, life[n]): seq for n, seq in v["seq"].items() if seq}),
        known=Map({n: _head(h) for n, h in _there(v["known"]).items()}),
        view=Map({n: _view(view) for n, view in v["view"].items() if view["length"]}),
        batch=Map({_id(b["id"]).writer: _batch(b) for b in batch.values()}),
        worker=Map(
            {
                n: Worker(w["phase"], w["epoch"], w["base"])
                for n, w in v["worker"].items()
                if w["phase"] != "idle"
            }
        ),
        inflight=frozenset(
            Request(_head(r["from"]), _head(r["to"]), _entries(r["entries"])) for r in v["inflight"]
        ),
        handovers=frozenset(
            HandOver(m["to"], m["length"], _batch(m["batch"])) for m in v["handovers"]
        ),
        answers=frozenset(
            Answer(a["to"], _id(a["id"]), _head(a["head"]), a["start"], _entries(a["entries"]))
            for a in v["answers"]
        ),
        acked=frozenset(Ack(_id(a["id"]), a["payload"], _given(a["first"])) for a in v["acked"]),
        rejected=frozenset(map(_id, v["rejected"])),
    )


def _there(function: Mapping[Any, Any]) -> dict[Any, Any]:
    return {at: value for at, value in function.items() if value != ABSENT}


def _or_none(value: Any) -> Any:
    return None if value == ABSENT else value


def _counts(function: Mapping[Any, int]) -> Map[Any, int]:
    return Map({at: n for at, n in function.items() if n})


def _commits(function: Mapping[Any, int]) -> Map[Any, int]:
    """The name of a token is a pair with its key there."""
    return _counts({f"{TOKEN}{k[1]}" if type(k) is tuple else k: n for k, n in function.items()})


def _given(function: Any) -> Map[Any, int]:
    """Without keys that have -1; a function of none is written as a sequence is."""
    return Map({at: n for at, n in dict(function).items() if n >= 0})


def _id(record: Any) -> Id:
    return Id(record["node"], record["incarnation"], record["seq"])


def _batch(b: Any) -> Batch:
    return Batch(_id(b["id"]), b["payload"], b["epoch"], _content(b["content"]))


def _content(c: Any) -> Content:
    return Content(_counts(c["count"]), _commits(c["commits"]), _given(c["expected"]))


def _entries(sequence: Iterable[Any]) -> tuple[Entry, ...]:
    return tuple(map(_entry, sequence))


def _entry(e: Any) -> Entry:
    content = _content(e)
    first = Map({key: e["first"][key] for key in content.counts})
    return Entry(_id(e["id"]), e["payload"], e["epoch"], first, *content)


def _head(h: Any) -> Head:
    return Head(h["state"], h["epoch"], _or_none(h["limit"]), h["base"], _entries(h["tail"]))


def _view(view: Any) -> View:
    blocks = {
        key: tuple(Block(_id(b["id"]), b["first"], b["count"]) for b in own)
        for key, own in view["blocks"].items()
        if own
    }
    latest, committed = _counts(view["latest"]), _commits(view["committed"])
    return View(view["length"], Map(blocks), latest, committed)
