"""The form of replies, checked as strictly as the real tool does: nothing missing, mistyped, or more.

The client of sets and counters adds and reads:

{"type": "add", FIELD: ...}  ->  {"type": "add_ok"}
{"type": "read"}             ->  {"type": "read_ok", "value": ...}
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from runs.history import Op
from workloads.interface import CLIENT_TIMEOUT_MS, Body, MalformedReply, Rpc, RpcError, Steps, shown

_ENVELOPE = {"type", "msg_id", "in_reply_to"}


class Form(NamedTuple):
    """What a field of a reply must be: in words, and as a test; `each`: all values inside, or each by place."""

    name: str
    accepts: Callable[[Any], bool]
    each: "Form | dict[int, Form] | None" = None


ANY = Form("anything", lambda _value: True)
INTEGER = Form("an integer", lambda value: type(value) is int)
# The real tool takes null for an empty array, which is how Go writes an array that was never made.
ARRAY = Form("an array", lambda value: value is None or isinstance(value, list))


def require(request: Body, reply: Body, **fields: Form) -> None:
    """Raise `MalformedReply` unless `reply` is the `<type>_ok` of `request` with exactly these fields."""
    kind = f"{request['type']}_ok"
    if why := _complaint(kind, reply, fields):
        parts = (f'"{name}": <{form.name}>' for name, form in fields.items())
        body = ", ".join((f'"type": "{kind}"', *parts, '"in_reply_to": <msg_id>'))
        raise MalformedReply(request, reply, f"{{{body}}}", why)


def _complaint(kind: str, reply: Body, fields: dict[str, Form]) -> str:
    """What is wrong with a reply; empty when nothing is."""
    if reply.get("type") != kind:
        return f"the type is {shown(reply.get('type'))}, not {shown(kind)}"
    unknown = reply.keys() - fields.keys() - _ENVELOPE
    if missing := fields.keys() - reply.keys():
        beside = (
            f", and {', '.join(sorted(unknown))} is none that was asked for"
            if unknown
            else " (JavaScript leaves out what is undefined)"
        )
        return f"the field {', '.join(sorted(missing))} is missing{beside}"
    if unknown:
        return f"nobody asked for the field {', '.join(sorted(unknown))}"
    wrong = (name for name, form in fields.items() if not form.accepts(reply[name]))
    return next((_wrong(name, reply[name], fields[name]) for name in wrong), "")


def _wrong(name: str, value: Any, form: Form) -> str:
    """What is wrong with a field, or with the first value inside that is wrong."""
    entries = dict(enumerate(value)) if isinstance(value, list) else value
    for key, inside in entries.items() if isinstance(entries, dict) else ():
        each = form.each.get(key) if isinstance(form.each, dict) else form.each
        if each and not each.accepts(inside):
            return _wrong(f"{name}.{key}", inside, each)
    of_javascript = " (JavaScript writes null for NaN)" if value is None and form is INTEGER else ""
    return f"the field {name} is {shown(value)}, not {form.name}{of_javascript}"


# ---------------------------------------------------------------- clients


def ask(node: str, request: Body, timeout_ms: int = CLIENT_TIMEOUT_MS, **fields: Form) -> Steps:
    """Send a request, and return its reply, which has exactly these fields (`require`)."""
    reply = yield Rpc(node, request, timeout_ms)
    require(request, reply, **fields)
    return reply


class Stateless(NamedTuple):
    """A client that remembers nothing: `perform` takes the node and the operation, as `Client.invoke` does."""

    node: str
    perform: Callable[[str, Op], Steps]

    def invoke(self, op: Op) -> Steps:
        return self.perform(self.node, op)


def add_or_read(
    node: str, op: Op, *, field: str, value: Form, read: str = "value", definite: bool = False
) -> Steps:
    """Perform an operation of a set or a counter.

    `field` names what is added, `read` what is read, and `value` is the form of that. Unless errors are
    `definite`, an operation may have happened whatever error the node answers.
    """
    try:
        if op.f == "read":
            return (yield from ask(node, {"type": op.f}, CLIENT_TIMEOUT_MS, **{read: value}))[read]
        yield from ask(node, {"type": op.f, field: op.value})
    except RpcError as error:
        raise error if definite else error.unknown() from None
    return op.value
