"""Whatever a node answers is malformed or judged: the bench never breaks, and no odd answer passes as right."""

from collections.abc import Callable
from json import dumps
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import workloads
from bench.verdict import kept
from runs.files import JOURNAL
from runs.history import Keyword, Op
from simulation.hosts import MakeNode, NodeSession
from tests.property.odd import ODD
from tests.scripted import ROOT, node_of
from tests.toy_log import MemoryLog, VirtualRun, judged, verdict_of
from workloads.interface import MalformedReply, Setting

EXAMPLES = ROOT / "workloads/examples"
NODES: dict[str, Path | None] = {
    "broadcast": EXAMPLES / "broadcast.py",
    "echo": EXAMPLES / "echo.py",
    "g-counter": EXAMPLES / "g_counter.py",
    "g-set": EXAMPLES / "g_set.py",
    "kafka": None,
    "lin-kv": ROOT / "tests/nodes/lin_kv_node.py",
    "pn-counter": EXAMPLES / "pn_counter.py",
    "txn-list-append": EXAMPLES / "txn_list_append.py",
    "txn-rw-register": EXAMPLES / "txn_rw_register.py",
    "unique-ids": EXAMPLES / "unique_ids.py",
}
ENVELOPE = ("type", "msg_id", "in_reply_to")


class Odd(NodeSession):
    """A node that answers its clients as `node` does, but now and then oddly, or twice."""

    def __init__(self, node: NodeSession, random: Random) -> None:
        self._node = node
        self._random = random
        self._right = random.choice([0.6, 0.95])

    @property
    def deadline(self) -> float | None:
        return self._node.deadline

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        self._node.receive(line, now, arrived_at)

    def pass_time(self, now: float) -> None:
        self._node.pass_time(now)

    def take(self) -> bytes:
        lines = self._node.take().splitlines(keepends=True)
        return b"".join(printed for line in lines for printed in self._printed(line))

    def _printed(self, line: bytes) -> list[bytes]:
        message = orjson.loads(line)
        body = message["body"]
        to_client = message["dest"][0] == "c" and body["type"] != "init_ok"
        if not to_client or self._random.random() < self._right:
            return [line]
        content = [name for name in body if name not in ENVELOPE]
        name = self._random.choice(content * 9 + [*ENVELOPE, "x"])
        message["body"] = body | {name: self._changed(body.get(name))}
        if self._random.random() < 0.05:
            del message["body"][name]
        odd = orjson.dumps(message) + b"\n"
        return self._random.choice([[odd], [odd, line], [odd, odd]])

    def _changed(self, value: Any) -> Any:
        """The value with one part of it, at any depth, replaced, left out, or added."""
        random = self._random
        if random.random() < 0.3 or not isinstance(value, dict | list):
            alike = [each for each in ODD if type(each) is type(value)]
            return random.choice(alike if alike and random.random() < 0.8 else ODD)
        if isinstance(value, list):
            place = random.randrange(len(value) + 1)
            part = self._changed(value[place] if place < len(value) else None)
            parts = [part] * random.randrange(3)
            return [*value[:place], *parts, *value[place + random.randrange(2) :]]
        name = random.choice([*value, "x"])
        left = {key: part for key, part in value.items() if key != name}
        return left if random.random() < 0.1 else {**left, name: self._changed(value.get(name))}


def odd(workload: str, random: Random) -> MakeNode:
    script, shared = NODES[workload], dict[str, Any]()
    make = node_of(script) if script else lambda name, _start: MemoryLog(name, shared)
    return lambda name, start: Odd(make(name, start), random)


@pytest.mark.parametrize("workload", NODES)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_no_answer_breaks_the_bench(
    tmp_path_factory: pytest.TempPathFactory, workload: str, seed: int
) -> None:
    options: dict[str, Any] = {
        "rate": 30.0,
        "time_limit_s": 1,
        "key_count": None,
        "strict": bool(seed % 2),
    }
    run = VirtualRun(make=odd(workload, Random(seed)), workload=workload, **options)
    found = judged(run)
    checks = [each for each in found.results.values() if isinstance(each, dict)]
    assert not [each for each in checks if "error" in each]
    assert "exceptions" not in found.results["exceptions"], "a client of the bench broke"
    folder = tmp_path_factory.mktemp("run")
    (folder / JOURNAL).write_bytes(run.journal_file.content)
    kept.write_results(folder, found)
    assert verdict_of(run)


class Asked(NamedTuple):
    """An operation, and what the real tool's schema takes for its first reply. [Maelstrom's workload/*.clj]"""

    workload: str
    f: str
    value: Any
    kind: str
    fields: dict[str, Callable[[Any], bool]]


def is_integer(value: Any) -> bool:
    return type(value) is int


def is_array(value: Any) -> bool:
    return value is None or isinstance(value, list)


def is_anything(_value: Any) -> bool:
    return True


def are_offsets(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_integer, value.values()))


def are_messages(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(pairs, list)
        and all(isinstance(each, list) and len(each) == 2 and is_integer(each[0]) for each in pairs)
        for pairs in value.values()
    )


def is_txn(write: str, read: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The real tool's schema asks for less: not for the same keys and writes."""

    def accepts(txn: Any) -> bool:
        parts = txn if isinstance(txn, list) else []
        if len(parts) != 2 or not all(isinstance(each, list) and len(each) == 3 for each in parts):
            return False
        (*first, seen), second = parts
        return [dumps(first), dumps(second)] == ['["r", 9]', f'["{write}", 9, 1]'] and read(seen)

    return accepts


def txn(write: str) -> list[Any]:
    return [[Keyword("r"), 9, None], [Keyword(write), 9, 1]]


ASKED = [
    Asked("broadcast", "broadcast", 1, "broadcast_ok", {}),
    Asked("broadcast", "read", None, "read_ok", {"messages": is_array}),
    Asked("echo", "echo", "x", "echo_ok", {"echo": is_anything}),
    Asked("g-counter", "read", None, "read_ok", {"value": is_integer}),
    Asked("g-set", "add", 1, "add_ok", {}),
    Asked("g-set", "read", None, "read_ok", {"value": is_array}),
    Asked("kafka", "send", [["send", "9", 1]], "send_ok", {"offset": is_integer}),
    Asked("kafka", "poll", [["poll"]], "poll_ok", {"msgs": are_messages}),
    Asked("kafka", "assign", ["9"], "list_committed_offsets_ok", {"offsets": are_offsets}),
    Asked("lin-kv", "read", [9, None], "read_ok", {"value": is_anything}),
    Asked("lin-kv", "write", [9, 1], "write_ok", {}),
    Asked("lin-kv", "cas", [9, [1, 2]], "cas_ok", {}),
    Asked("pn-counter", "add", 1, "add_ok", {}),
    Asked("txn-list-append", "txn", txn("append"), "txn_ok", {"txn": is_txn("append", is_array)}),
    Asked("txn-rw-register", "txn", txn("w"), "txn_ok", {"txn": is_txn("w", is_anything)}),
    Asked("unique-ids", "generate", None, "generate_ok", {"id": is_anything}),
]
SETTING = Setting(("n0",), 1, {"max_writes_per_key": 16, "max_txn_length": 4}, Random)
json_values = st.recursive(
    st.sampled_from([None, True, 0, 1, 9, 1.0, 2**63, 2.0**70, "r", "w", "append", "9", "x"]),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=2), part, max_size=2),
    max_leaves=6,
)  # fmt: skip
pairs = st.lists(st.lists(json_values, min_size=2, max_size=2), max_size=2)
contents = json_values | st.dictionaries(st.sampled_from("9x"), pairs, min_size=1)
spoils = st.dictionaries(
    st.sampled_from(["type", "more", "msgs", "value"]), json_values, max_size=1
)


# All operations share what is drawn: drawing takes longer than the clients do.
@given(content=contents, spoiled=spoils)
@example(content=[["r", 9, [1]], ["append", 9, 1]], spoiled={})
@example(content=[["r", 9, 1], ["w", 9, 1]], spoiled={})
@example(content=[["r", 9, None], ["w", 9, True]], spoiled={})
@example(content=[["r", 9.0, None], ["append", 9, 1]], spoiled={})
@example(content={"x": [[0, 1]]}, spoiled={})
@example(content={"x": [[True, 1]]}, spoiled={})
def test_a_client_takes_what_the_schema_takes(content: Any, spoiled: dict[str, Any]) -> None:
    for asked in ASKED:
        require_as_the_schema(asked, content, spoiled)


def require_as_the_schema(asked: Asked, content: Any, spoiled: dict[str, Any]) -> None:
    client = workloads.build(asked.workload, SETTING).open_client("n0")
    steps = client.invoke(Op(0, 0, "invoke", 0, asked.f, asked.value))
    next(steps)
    reply = {
        "type": asked.kind,
        "in_reply_to": 1,
        **dict.fromkeys(asked.fields, content),
        **spoiled,
    }
    is_right = (
        reply["type"] == asked.kind
        and reply.keys() == {"type", "in_reply_to", *asked.fields}
        and all(accepts(reply[name]) for name, accepts in asked.fields.items())
    )
    try:
        steps.send(reply)
    except MalformedReply as malformed:
        complaint = malformed.why
    except StopIteration:
        complaint = ""
    else:
        complaint = ""  # a poll goes on and commits
    assert (complaint == "") == is_right, f"{asked.workload} {asked.f}: {complaint}"
