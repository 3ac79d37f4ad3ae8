"""One node's conversation, without I/O: lines in, lines out.

A session joins codec, store port and machine. Laws: every line is handled or logged, none raises; a request
is answered at most once, and a client that is gone not at all; nothing but messages goes out. Before `init` the
only message served is `init`.
"""

import logging
from collections.abc import Callable, Sequence
from reprlib import repr as brief
from typing import TYPE_CHECKING, assert_never

from leaderless.core.limits import Limits
from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Effect,
    HandOver,
    Json,
    Note,
    PeerAnswer,
    PeerCall,
    PollOk,
    Reply,
    Request,
    Send,
    StoreAnswer,
    StoreCall,
    Tell,
    TimePassed,
)
from leaderless.core.strategy import Identity
from leaderless.wire import bodies
from leaderless.wire.bodies import ErrorCode
from leaderless.wire.codec import BadLine, Body, Message, Unkept, decode, encode, keeps

if TYPE_CHECKING:  # only a node on a real store needs it
    from leaderless.hosting.host import Host
    from leaderless.runtime.kept_log import Look

log: logging.Logger = logging.getLogger("leaderless")

ENVELOPE_BYTES = 96  # what a line has around its payload, at least
# Types of a message that needs no look whether it can be kept.
PLAIN = frozenset({int, str, type(None)})


def log_note(note: Note) -> None:
    """Write a note of the machine into the node's log."""
    log.log(logging.ERROR if note.broken else logging.WARNING, "%s", note.text)


class Session:
    """A node from its first line to its last.

    `start` makes the machine once `init` has said who the node is; `incarnation` is a string that no two
    starts of a node share. `note` takes what the machine says for the log. `limits`: above which size requests
    are refused, and how long a client waits. `look`: what was found in the store of the log; None: store calls
    are messages to `lin-kv`. In another store `start` gives a host that makes them, and `carry_out` takes what
    the host leaves.
    """

    def __init__(
        self,
        start: "Callable[[Identity], Machine | Host]",
        incarnation: str,
        note: Callable[[Note], None] = log_note,
        *,
        limits: Limits | None = None,
        look: "Look | None" = None,
    ) -> None:
        self._on_lin_kv = look is None
        self._unusable = look.trouble if look else ""
        self._form = look if look and look.shape else None
        self._limits = limits or Limits()
        self._note = note
        self._start = start
        self._incarnation = incarnation
        self._identity: Identity | None = None
        self._machine: Machine | Host | None = None
        self._node = ""
        self._lines: list[bytes] = []

    @property
    def deadline(self) -> float | None:
        """When `pass_time` is next needed, in seconds, or None."""
        return self._machine.deadline if self._machine else None

    def take(self) -> bytes:
        """What is to be written now: whole lines."""
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def receive_all(
        self, lines: Sequence[bytes], now: float, arrived_at: float | None = None
    ) -> None:
        """Take lines that came together, and notice deadlines that have come; see `receive`."""
        last = len(lines) - 1
        for place, line in enumerate(lines):
            self.receive(line, now, arrived_at, more=place < last)
        deadline = self.deadline
        if deadline is not None and deadline <= now:
            self.pass_time(now)

    def receive(
        self, line: bytes, now: float, arrived_at: float | None = None, *, more: bool = False
    ) -> None:
        """Take one line, without its newline, at time `now` in seconds.

        It may have lain in the pipe since `arrived_at`, if that is given. `more`: see `Machine.step`.
        """
        try:
            src, dest, body = decode(line)
        except Unkept as unkept:
            if arrived_at is None or not self._is_gone(unkept.reply[0], now, arrived_at):
                self._refuse_unkept(unkept)
            return
        except BadLine as bad:
            if line.strip():
                log.warning("line dropped: %s", bad)
            return
        if "in_reply_to" in body:
            self._answered(src, body, now, more)
        elif body["type"] == bodies.SHARE:
            self._told(src, body, now, more)
        elif arrived_at is None or not self._is_gone(src, now, arrived_at):
            self._asked((src, dest, body), line, now, arrived_at, more)

    def pass_time(self, now: float) -> None:
        """Tell the machine that its deadline came."""
        if self._machine:
            self.carry_out(self._machine.step(TimePassed(), now))

    def _answered(self, src: str, body: Body, now: float, more: bool) -> None:
        call = body["in_reply_to"]
        if self._machine is None or type(call) is not int:
            log.info("reply dropped: nobody here asked %s for %s", src, brief(call))
        elif src == bodies.LIN_KV and self._on_lin_kv:
            self.carry_out(
                self._machine.step(StoreAnswer(call, bodies.outcome_of(body)), now, more=more)
            )
        elif self._is_peer(src):
            self.carry_out(
                self._machine.step(PeerAnswer(call, bodies.answer_of(body)), now, more=more)
            )
        else:
            log.warning("reply dropped: %s is neither the store nor a peer", brief(src))

    def _told(self, src: str, body: Body, now: float, more: bool) -> None:
        if not self._is_peer(src):
            log.warning("share dropped: %s is no peer", brief(src))
            return
        try:
            share = bodies.share_of(body)
        except bodies.MalformedRequest as malformed:
            log.warning("share from %s dropped: %s", src, malformed)
            return
        if self._machine:
            self.carry_out(self._machine.step(share, now, more=more))

    def _asked(
        self, message: Message, line: bytes, now: float, arrived_at: float | None, more: bool
    ) -> None:
        src, dest, body = message
        msg_id = body.get("msg_id")
        if type(msg_id) is not int:
            log.warning(
                "%s from %s dropped: without msg_id nobody can be answered", body["type"], src
            )
            return
        request = Request(src, msg_id)
        size = len(line)
        if self._identity is None:
            self._node = dest  # an error before init needs a sender too
        is_plain = size <= self._limits.message_bytes and type(body.get("msg")) in PLAIN
        if not is_plain and not self._may_ask(request, body, line):
            return
        if self._machine is None or body["type"] == "init":
            self._init(request, body)
            return
        try:
            event = bodies.event_of(request, body, max(8, size - ENVELOPE_BYTES))
            if isinstance(event, HandOver):
                self._require_own(src, event)
        except bodies.MalformedRequest as malformed:
            self._refuse(request, ErrorCode.MALFORMED_REQUEST, str(malformed))
        except bodies.NotSupported as unsupported:
            self._refuse(request, ErrorCode.NOT_SUPPORTED, str(unsupported))
        else:
            if self._form and isinstance(event, Send):
                event = event._replace(msg=self._form.kept(event.msg))
            self.carry_out(self._machine.step(event, now, arrived_at, more=more))

    def _is_gone(self, src: str, now: float, arrived_at: float) -> bool:
        """Whether a client asked so long ago that nothing may be sent to it any more, not even a refusal."""
        if self._identity is None or self._is_peer(src):
            return False
        waited_s = now - arrived_at
        if waited_s < self._limits.gone_s:
            return False
        log.info(
            "request of %s dropped: it waited for %.1f s, its client is gone", brief(src), waited_s
        )
        return True

    def _is_peer(self, src: str) -> bool:
        return self._identity is not None and src in self._identity.peers

    def _require_own(self, src: str, event: HandOver) -> None:
        """A batch is handed over by the node that made it. Raises `MalformedRequest`.

        Who that is does not matter: a node that joined later than this one is not in its `init`.
        """
        if not event.batch.writer.startswith(f"{src}."):
            raise bodies.MalformedRequest(
                f"{brief(src)} may not hand over a batch of {brief(event.batch.writer)}"
            )

    def _may_ask(self, request: Request, body: Body, line: bytes) -> bool:
        """Whether what a request carries can be kept; if not, it is refused here."""
        most = self._limits.message_bytes
        room = ENVELOPE_BYTES if body["type"] != "hand_over" else 2 * most
        if len(line) > most + room:
            text = f"a request may have {most} bytes, not {len(line)} (--message-max)"
        elif body["type"] == "send" and not keeps(line):
            text = "'msg' cannot be kept as it was sent: it has an integer beyond 64 bits"
        else:
            return True
        self._refuse(request, ErrorCode.MALFORMED_REQUEST, text)
        return False

    def _refuse_unkept(self, unkept: Unkept) -> None:
        src, dest, msg_id = unkept.reply
        self._node = self._node or dest
        self._refuse(Request(src, msg_id), ErrorCode.MALFORMED_REQUEST, str(unkept))

    def _init(self, request: Request, body: Body) -> None:
        if body["type"] != "init":
            self._refuse(
                request, ErrorCode.TEMPORARILY_UNAVAILABLE, "not initialised: send init first"
            )
            return
        node, nodes = body.get("node_id"), body.get("node_ids")
        if not (
            isinstance(node, str)
            and isinstance(nodes, list)
            and all(isinstance(each, str) for each in nodes)
        ):
            self._refuse(
                request,
                ErrorCode.MALFORMED_REQUEST,
                "init needs a string 'node_id' and a list of strings 'node_ids'",
            )
            return
        if self._unusable:
            self._refuse(request, ErrorCode.TEMPORARILY_UNAVAILABLE, self._unusable)
            return
        identity = Identity(node, tuple(nodes), f"{node}.{self._incarnation}")
        if self._identity is None:
            self._identity, self._node = identity, node
            self._machine = self._start(identity)
        if identity == self._identity:  # a repeated init is answered again, and changes nothing
            self._send(request.src, {"type": "init_ok", "in_reply_to": request.msg_id})
        else:
            self._refuse(request, ErrorCode.ABORT, f"this node is {self._node!r} already")

    def _refuse(self, request: Request, code: ErrorCode, text: str) -> None:
        log.info("%s refused: %s", request, text)
        body = {"type": "error", "code": code, "text": text, "in_reply_to": request.msg_id}
        self._send(request.src, body)

    def carry_out(self, effects: list[Effect]) -> None:
        """Turn effects of the machine into lines."""
        for effect in effects:
            if isinstance(effect, Reply):
                (dest, msg_id), answer = effect.request, effect.answer
                if self._form and isinstance(answer, PollOk):
                    answer = _shown(answer, self._form.shown)
                body = bodies.body_of(answer)
                body["in_reply_to"] = msg_id
            elif isinstance(effect, StoreCall):
                dest, body = bodies.LIN_KV, bodies.request_body(effect)
            elif isinstance(effect, PeerCall):
                dest, body = effect.dest, bodies.question_of(effect)
            elif isinstance(effect, Tell):
                dest, body = effect.dest, bodies.body_of_share(effect.share)
            elif isinstance(effect, Note):
                self._note(effect)
                continue
            else:
                assert_never(effect)
            try:
                self._lines.append(encode(self._node, dest, body))
            except TypeError as error:  # `orjson.JSONEncodeError`, such as a value nested too deep
                self._send_failure(dest, body, error)

    def _send_failure(self, dest: str, body: Body, error: TypeError) -> None:
        """In place of a message that cannot be written."""
        log.error("a message to %s cannot be written: %s", brief(dest), error)
        if "in_reply_to" in body:  # or nobody answers, as if it were lost
            text = f"the answer cannot be written: {error}"
            failed = {"type": "error", "code": ErrorCode.CRASH, "text": text}
            self._send(dest, failed | {"in_reply_to": body["in_reply_to"]})

    def _send(self, dest: str, body: Body) -> None:
        self._lines.append(encode(self._node, dest, body))


def _shown(answer: PollOk, shown: Callable[[Json], Json]) -> PollOk:
    return PollOk(
        {key: [[at, shown(msg)] for at, msg, *_ in pairs] for key, pairs in answer.msgs.items()}
    )
