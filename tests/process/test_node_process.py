"""The node as a process: what only real pipes, files and exit statuses show."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fakes import LinKv
from tests.process.test_bench import HANGS_S

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
NODE = [sys.executable, str(ROOT / "node.py")]
INIT = {"type": "init", "msg_id": 1, "node_id": "n0", "node_ids": ["n0"]}


def line(body: dict[str, Any], src: str = "c1") -> bytes:
    return orjson.dumps({"id": 7, "src": src, "dest": "n0", "body": body}) + b"\n"


class Node:
    """A started node that is spoken to message by message; it keeps its log in `lin-kv` or where it is told."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        pipe, command = subprocess.PIPE, [*NODE, *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=os.environ | environment,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.store = LinKv()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(timeout=HANGS_S)
        self.stdin.close()
        self.stdout.close()

    def say(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def hear(self) -> dict[str, Any]:
        message: dict[str, Any] = orjson.loads(self.stdout.readline())
        return message

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; store calls on the way to it are served."""
        self.say(line(body))
        while (answer := (message := self.hear())["body"]).get("in_reply_to") != body["msg_id"]:
            if message["dest"] == "lin-kv":
                self.say(line(self.store.handle(answer), src="lin-kv"))
        assert isinstance(answer, dict)
        return answer


@pytest.fixture(params=["asyncio", "trio"])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    node = Node("--strategy", "cas", "--backend", request.param, "--store-timeout-ms", "50")
    yield node
    node.stop()


def test_the_life_of_a_log(node: Node) -> None:
    assert node.ask(INIT) == {"type": "init_ok", "in_reply_to": 1}
    for number, offset in ((2, 0), (3, 1)):
        reply = node.ask({"type": "send", "msg_id": number, "key": "k", "msg": number * 10})
        assert reply == {"type": "send_ok", "offset": offset, "in_reply_to": number}
    reply = node.ask({"type": "poll", "msg_id": 4, "offsets": {"k": 0, "j": 0}})
    assert reply == {"type": "poll_ok", "msgs": {"k": [[0, 20], [1, 30]]}, "in_reply_to": 4}
    reply = node.ask({"type": "commit_offsets", "msg_id": 5, "offsets": {"k": 1}})
    assert reply == {"type": "commit_offsets_ok", "in_reply_to": 5}
    reply = node.ask({"type": "list_committed_offsets", "msg_id": 6, "keys": ["k", "j"]})
    assert reply == {"type": "list_committed_offsets_ok", "offsets": {"k": 1}, "in_reply_to": 6}
    node.stdin.close()
    assert node.process.wait(timeout=HANGS_S) == 0


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_nobody_reads_stdout(backend: str) -> None:
    node = Node("--backend", backend)
    node.stdout.close()
    node.say(line(INIT))
    assert node.process.wait(timeout=HANGS_S) == 0
    node.stop()
