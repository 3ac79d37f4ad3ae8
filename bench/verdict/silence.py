"""Why a node did not answer: what it did last, what is missing, and what to do.

The bench sees a node's pipes and its messages, and nothing of the node itself. What follows from these for
certain is said as a fact. Where nothing came at all, what is likely is said as that.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.failure import clip
from bench.verdict.last_error import NO_ERROR, Outcry
from runs.traffic import SERVICES
from workloads.interface import ERRORS, UNKNOWN_ERROR, shown

_SHOWN = 200  # characters of what has no line end

KEY_VALUE = SERVICES[:3]
OWN_CODES = 1000  # and those behind it are free [maelstrom doc/protocol.md]
# What a service needs of a request, by its type.
_FIELDS = {"read": ("key",), "write": ("key", "value"), "cas": ("key", "to")}
_NO_NAME = r"\b(undefined|None|null|NaN)\b|\[object Object\]"

Sent = Mapping[str, Any]  # a message, as the journal has it


@dataclass(frozen=True, slots=True)
class Pipes:
    """What lies in the pipes of a node.

    `unread_bytes` of messages wait for it, None where nobody can tell. It printed `torn_bytes` after its last
    line end, which begin with `torn`. `astray` is its last line on stderr that is a message of its own, and
    `error` its last error there.
    """

    unread_bytes: int | None = None
    torn: bytes = b""
    torn_bytes: int = 0
    astray: str = ""
    error: Outcry = NO_ERROR


class Why(NamedTuple):
    """A `fact` about a node, as a clause, and what to do about it, in sentences."""

    fact: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.fact}. {self.advice}".rstrip()


_FLUSH = (
    "If it has answered, the answer is still in its own buffer: flush stdout after each line (in Python"
    " `print(..., flush=True)`), and read stdin line by line, not to its end."
)
_READ = "Read stdin line by line, as long as the node lives, and begin at once. Messages come on stdin alone."
DEST = "The `dest` of an answer is the `src` of its request."
_DEAF = (
    "Something has stopped it: a wait for the answer where lines are read, such as `await` in that loop, so"
    " that nothing reads the answer; or an error when the answer came."
)
_UNDEFINED = "Check the name from which it comes (JavaScript leaves out what is undefined)."
_STOPPED = "Nothing may stop what reads stdin: no wait for an answer, no lock, no sleep."


def why_silent(node: str, request: str, last: Sent | None, pipes: Pipes) -> Why:
    """Why `request`, a type, has no answer. `last` is what the node sent last, None if nothing came from it."""
    if torn := of_torn(node, pipes):
        return torn
    found = of_message(node, last, pipes) if last else _of_nothing(node, request, pipes)
    return with_error(found, pipes)


def with_error(why: Why, pipes: Pipes) -> Why:
    """The same with the error on the node's stderr, which says more than a guess."""
    if not pipes.error.certain:
        return why
    advice = "" if why.advice in (_FLUSH, _READ, _STOPPED, _DEAF) else why.advice
    return Why(f"{why.fact}; its stderr says: {pipes.error.certain}", advice)


def of_torn(node: str, pipes: Pipes) -> Why | None:
    """What follows from a line without an end; None if there is no such line."""
    if not pipes.torn_bytes:
        return None
    begin = clip(pipes.torn.decode(errors="replace"), _SHOWN)
    return Why(
        f"{pipes.torn_bytes} bytes came from {node}, and no line end: {begin}",
        "End each message with a newline (\\n).",
    )


def _of_nothing(node: str, request: str, pipes: Pipes) -> Why:
    if pipes.astray:
        fact = f"{node} printed nothing on stdout, and a message on stderr: {pipes.astray}"
        return Why(fact, f"The bench reads messages on stdout alone. {_FLUSH}")
    if pipes.unread_bytes:
        return Why(f"{node} has not read {request}: {_unread(pipes)}", _READ)
    has_read = "" if pipes.unread_bytes is None else f"has read {request} and "
    return Why(f"{node} {has_read}printed nothing", _FLUSH)


def of_message(node: str, message: Sent, pipes: Pipes) -> Why:
    """What the node did last, and what is wrong with that, if anything is."""
    return wrong(node, message) or _of_last(node, message, pipes)


def wrong(node: str, message: Sent) -> Why | None:
    """Why a message of a node can have no answer, or be none; None if nothing speaks against it."""
    dest, body = message["dest"], message["body"]
    if dest == node and ("in_reply_to" in body or _kind(body).endswith("_ok")):
        return Why(f"{node} sent {_kind(body)} to itself", DEST)
    if (src := message["src"]) != node:
        to = "itself" if dest == node else dest
        return Why(
            f"{node} sent {_kind(body)} to {to} in the name of {src}",
            "Write the node's own name into `src`, and print no message that the node was given.",
        )
    if dest in SERVICES and type(body.get("msg_id")) is not int:
        how = f"with msg_id {shown(body['msg_id'])}" if "msg_id" in body else "without a msg_id"
        return Why(
            f"{node} sent {_kind(body)} to {dest} {how}, so {dest} was asked and cannot answer it",
            "Give each request a `msg_id`, an integer of its own.",
        )
    return None


def unfit(node: str, message: Sent) -> Why | None:
    """What a request to a key-value store lacks; None if nothing."""
    dest, body = message["dest"], message["body"]
    for each in _FIELDS.get(_kind(body), ()) if dest in KEY_VALUE else ():
        if each not in body:
            return Why(f"{node} sent {_kind(body)} to {dest} without `{each}`", _UNDEFINED)
        if each == "key" and re.search(_NO_NAME, shown(body["key"])):
            return Why(
                f"{node} sent {_kind(body)} to {dest} with the key {shown(body['key'])}", _UNDEFINED
            )
    return None


def _of_last(node: str, message: Sent, pipes: Pipes) -> Why:
    dest, kind = message["dest"], _kind(message["body"])
    what = f"asked {dest} ({kind})" if dest in SERVICES else f"sent {kind} to {dest}"
    if pipes.unread_bytes:
        return Why(f"{node} {what} last, and {_unread(pipes)}", _STOPPED)
    return Why(f"{node} {what} last, and has sent nothing since")


def named(code: int) -> str:
    """An error's code with its name."""
    return f"{code} ({ERRORS.get(code, (UNKNOWN_ERROR, False))[0]})"


def of_unheeded(node: str, message: Sent, code: int | None, count: int) -> Why:
    """What follows from a request to a service after whose answer, and others of `count`, nothing came."""
    error = f", error {named(code)}," if code is not None else ""
    asked = f"{node} asked {message['dest']} ({_kind(message['body'])}) last, and has sent nothing since"
    return Why(f"{asked}, though the answer{error} and {count - 1} more messages came", _DEAF)


def of_refusals(node: str, service: str, request: str, code: int, count: int) -> Why:
    """What follows from a service that refused the node's last requests, so many of them, with one error."""
    before = f", as {count - 1} before," * (count > 1)
    return Why(
        f"{service} refused the last {request} of {node}{before} with error {named(code)}",
        _REFUSED.get((request, code), ""),
    )


_REFUSED = {
    ("cas", 20): (
        "A cas of a key that was never written needs `create_if_not_exists: true` (lin-kv, seq-kv), or a"
        " write before it."
    ),
    ("cas", 22): "The key holds another value than `from`: read it again before the next cas.",
    ("read", 20): "Nobody has written this key yet: take that for its first value.",
}


def is_known(code: Any) -> bool:
    """Whether an error with this code says whether the operation happened."""
    return type(code) is int and (code in ERRORS or code >= OWN_CODES)


def of_code(node: str, message: Sent) -> Why:
    """What follows from an error of a node that has no code, or one that nobody knows."""
    body = message["body"]
    if type(body.get("code")) is int:
        known = f"{', '.join(map(str, ERRORS))}, or of your own from {OWN_CODES} on"
        fact = f"{node} answered an error with the code {body['code']}, which is none of {known}"
        return Why(
            fact,
            "Such a code does not say whether the operation happened: give 11 or 14 if it did not.",
        )
    code = (
        f"with the code {shown(body['code'])}, which is no integer"
        if "code" in body
        else "without a code"
    )
    return Why(
        f"{node} answered an error {code}",
        "Without a `code` nobody knows whether the operation happened: give 11 or 14 if it did not.",
    )


def _unread(pipes: Pipes) -> str:
    return f"{pipes.unread_bytes} bytes wait unread in its stdin"


def _kind(body: Mapping[str, Any]) -> str:
    return str(body.get("type", "a message without a type"))
