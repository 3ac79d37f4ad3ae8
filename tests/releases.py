"""Processes on one log, programs and nodes: each does what lines on its stdin ask.

As a program (`python -m tests.releases URL`) it opens the log and answers each line, a JSON list, with one:
["append", key, value], ["read", key], ["keys"].
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


class Refused(Exception):
    """An answer that says no; the argument is what it says."""


class _Spoken:
    """A process that answers lines."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )

    def say(self, message: Any) -> Any:
        """The answer to a message."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            self.close()
            raise Refused("the process ended")
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


class Program(_Spoken):
    """A program that uses the library."""

    def __init__(self, url: str) -> None:
        super().__init__([sys.executable, "-m", "tests.releases", url])
        self.ask("keys")  # the log is open

    def ask(self, *request: Any) -> Any:
        """What a request returns. Raises `Refused`."""
        answer = self.say(request)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def append(self, key: str, value: Any) -> int:
        """The offset."""
        return int(self.ask("append", key, value))

    def read(self, key: str) -> list[Any]:
        """All values of a key."""
        return list(self.ask("read", key))


class Node(_Spoken):
    """A node whose log is in a store, one of `nodes`."""

    def __init__(self, url: str, *, nodes: int = 1, name: str = "n0") -> None:
        command = [sys.executable, "-m", "leaderless.cli", "node", "--store", url]
        super().__init__([*command, "--log-level", "error", "--freshness", "0"])
        self._asked = 0
        self._name = name
        names = [f"n{number}" for number in range(nodes)]
        self.request({"type": "init", "node_id": name, "node_ids": names})

    def request(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of the answer. Raises `Refused`."""
        self._asked += 1
        message = {"src": "c1", "dest": self._name, "body": {"msg_id": self._asked, **body}}
        answer: dict[str, Any] = self.say(message)["body"]
        if answer["type"] == "error":
            raise Refused(answer["text"])
        return answer

    def append(self, key: str, value: Any) -> int:
        """The offset."""
        return int(self.request({"type": "send", "key": key, "msg": value})["offset"])

    def read(self, key: str) -> list[Any]:
        """All values of a key."""
        found: list[Any] = []
        while more := self.request({"type": "poll", "offsets": {key: len(found)}})["msgs"].get(key):
            found += [message for _, message in more]
        return found


Party = Program | Node


@contextmanager
def running(*parties: Party) -> Iterator[tuple[Party, ...]]:
    """Processes that end with the block."""
    try:
        yield parties
    finally:
        for party in parties:
            party.close()


# ---------------------------------------------------------------- as a program


def serve(url: str) -> None:
    """Answer the lines on stdin."""
    from leaderless import open_log_sync
    from leaderless.errors import LogError

    with open_log_sync(url, patience_s=5.0, store_timeout_s=1.0) as log:
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            try:
                answer = {"result": _result(log, name, arguments)}
            except LogError as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _result(log: Any, name: str, arguments: list[Any]) -> Any:
    match name:
        case "append":
            return log.append(*arguments)
        case "read":
            return [record.value for record in _records(log, *arguments)]
        case _:
            return getattr(log, name)(*arguments)


def _records(log: Any, key: str) -> Iterator[Any]:
    at = 0
    while found := log.read(key, at, 1000):
        yield from found
        at = found[-1].offset + 1


if __name__ == "__main__":
    serve(sys.argv[1])
