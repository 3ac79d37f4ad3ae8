"""The node beside which the real one is measured keeps a log, and sends no more messages than it must."""

from itertools import islice
from typing import Any

import orjson
import pytest

from bench.services.requests import respond_kv
from performance.child import INIT, Registers, line
from performance.least_node import LEAST, LeastNode
from performance.node_throughput import requests_of

REQUESTS, IN_FLIGHT = 600, 16


def turn(node: LeastNode, lines: list[bytes]) -> list[dict[str, Any]]:
    for each in lines:
        node.receive(each)
    node.chunk_ends()
    said, node.out = node.out, []
    return [orjson.loads(each) for each in said]


def conversation(node: LeastNode) -> tuple[dict[int, dict[str, Any]], int]:
    """The answer to each request, and how often the store was called."""
    registers: Registers = {}
    answers: dict[int, dict[str, Any]] = {}
    calls = 0
    turn(node, [line("c0", INIT)])
    requests = requests_of(REQUESTS)
    lines = [*islice(requests, IN_FLIGHT)]
    while lines:
        said, lines = turn(node, lines), []
        for message in said:
            body = message["body"]
            if message["dest"] == "lin-kv":
                calls += 1
                reply, changes = respond_kv(registers.get, body)
                registers |= changes
                lines.append(line("lin-kv", {**reply, "in_reply_to": body["msg_id"]}))
            else:
                assert body["in_reply_to"] not in answers
                answers[body["in_reply_to"]] = body
                lines += islice(requests, 1)
    return answers, calls


@pytest.mark.parametrize(("strategy", "calls_least"), [("cas", 400), ("leaderless", 20)])
def test_every_send_has_its_offset_and_polls_show_it(strategy: str, calls_least: int) -> None:
    answers, calls = conversation(LEAST[strategy]())
    sent: dict[str, dict[int, int]] = {}
    for request in map(orjson.loads, requests_of(REQUESTS)):
        body = request["body"]
        answer = answers.pop(body["msg_id"])
        if body["type"] == "send":
            offsets = sent.setdefault(body["key"], {})
            assert answer["offset"] not in offsets
            offsets[answer["offset"]] = body["msg"]
        else:
            answers[body["msg_id"]] = answer
    assert all(sorted(offsets) == [*range(len(offsets))] for offsets in sent.values())
    shown = 0
    for answer in answers.values():
        for key, pairs in answer["msgs"].items():
            assert [msg for _, msg in pairs] == [sent[key][at] for at, _ in pairs]
            shown += len(pairs)
    assert shown > REQUESTS / 4
    assert calls_least < calls < REQUESTS
