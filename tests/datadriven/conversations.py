"""Plays a transcript of a conversation with one node, line by line.

    > session cas [timeout=60]      a node before its `init`; a call of its store takes so many seconds at most
    > init                          it is n0, and there is n1
    > at 14.5                       what is due at this time, in seconds, happens
    > late 14.7                     the same, and what is due is not noticed yet
    > arrived 4                     what comes now lay in the pipe since then; `arrived` ends that
    > c1 {"type":"poll"}            a body from c1; "x*3000" is a text of so many x
    > line \\xff                     a line as it is, with Python's escapes
    > deadline                      when something is due

Below stand the messages that the node writes and, in parentheses, what it logs.
"""

import json
import logging

from leaderless.core.pace import Pace
from leaderless.runtime.session import Session
from simulation.nodes import LINEARIZABLE, new_session
from tests.datadriven.runner import Player, chosen_of, json_of

INIT = '{"type":"init","msg_id":1,"node_id":"n0","node_ids":["n0","n1"]}'


class Conversation(Player):
    """Tells lines to one session."""

    def __init__(self) -> None:
        super().__init__()
        self._session: Session
        self._now = 0.0
        self._arrived_at: float | None = None
        self._logs = Logs()
        self.commands |= {
            "session": self._new,
            "init": lambda _: self.otherwise("c0", [INIT]),
            "at": self._at,
            "late": lambda words: self._set_times(float(words[0]), None),
            "arrived": lambda words: self._set_times(self._now, float(words[0]) if words else None),
            "line": lambda words: self._told(
                " ".join(words).encode().decode("unicode_escape").encode("latin-1")
            ),
            "deadline": lambda _: [str(self._session.deadline)],
        }

    def play(self, text: str) -> str:
        log = logging.getLogger("leaderless")
        log.addHandler(self._logs)
        try:
            return super().play(text)
        finally:
            log.removeHandler(self._logs)

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        return self._told(f'{{"src":"{name}","dest":"n0","body":{" ".join(words)}}}'.encode())

    def _new(self, words: list[str]) -> list[str]:
        pace = Pace(store_timeout_s=float(chosen_of(words).get("timeout", 1.0)))
        self._session = new_session(words[0], options=LINEARIZABLE._replace(pace=pace))
        return self._set_times(0.0, None)

    def _set_times(self, now: float, arrived_at: float | None) -> list[str]:
        self._now, self._arrived_at = now, arrived_at
        return []

    def _at(self, words: list[str]) -> list[str]:
        self._now = float(words[0])
        self._session.receive_all([], self._now)
        return self._said()

    def _told(self, line: bytes) -> list[str]:
        self._session.receive(line, self._now, self._arrived_at)
        return self._said()

    def _said(self) -> list[str]:
        said = map(json.loads, self._session.take().splitlines())
        lines = [f"{each['src']} -> {each['dest']} {json_of(each['body'])}" for each in said]
        return [*lines, *self._logs.taken()]


def _bytes(text: str) -> bytes:
    return text.encode().decode("unicode_escape").encode("latin-1")


class Logs(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(f"({record.getMessage()})")

    def taken(self) -> list[str]:
        texts, self._texts = self._texts, []
        return texts
