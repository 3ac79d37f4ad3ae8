"""Why no operation of a kind succeeded, in a sentence for each kind.

The history has the errors. A request without an answer leaves no more than `net-timeout` there, and an error
without a code no more than `unknown`. So the journal of messages says the rest: what each node sent, what
services answered it, and whether its answers name a request (`in_reply_to`) and came in time. An answer that
comes after its client has left is not in the journal: it mutes the node (`bench.net`), which the history says.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from bench.net import advice, reason
from bench.verdict.silence import (
    Pipes,
    Sent,
    Why,
    is_known,
    of_code,
    of_message,
    of_refusals,
    of_torn,
    of_unheeded,
    with_error,
    wrong,
)
from runs import edn
from runs.faults import HEARD, MUTE
from runs.history import NEMESIS, TIMEOUT, Op, completions, error_text
from runs.traffic import SERVICES, Event, is_client, sender
from workloads.interface import UNKNOWN_ERROR, Placement

_NS = 1e9
_NODES_TOLD = 4
_ABSENT = 20  # the error of a key that does not exist
_REFUSALS_MIN = {22: 3}  # by code: fewer in a row are usual, as another node was first
_IN_TIME = "A client waits {} for an answer."


def reasons(
    history: Sequence[Op],
    never: Iterable[str],
    place: Placement,
    events: Callable[[], Iterable[Event]],
    pipes: Mapping[str, Pipes] = MappingProxyType({}),
) -> dict[str, str]:
    """For each `f` in `never`, none of whose operations succeeded, a sentence that says why.

    `events` reads the journal. It is called only when an operation had no answer, or an error without a code.
    `pipes` are those of the nodes at the end of the run, where they are known.
    """
    completed = [op for op in history if op.type != "invoke" and op.process != NEMESIS]
    missed = {f: [op for op in completed if op.f == f] for f in never}
    errors = {
        f: Counter(map(error_text, ops)).most_common(1)[0] for f, ops in missed.items() if ops
    }
    unclear = [f for f, (error, _) in errors.items() if error.startswith((TIMEOUT, UNKNOWN_ERROR))]
    deeds = _deeds(events()) if unclear else {}
    told, mute = {}, _mute(history)
    for f, (error, count) in errors.items():
        nodes = list(dict.fromkeys(place.node(int(op.process)) for op in missed[f]))
        found = ((node, deeds.get(node, Deeds())) for node in nodes)
        if error == TIMEOUT:
            what, patience_ns = "had no answer in time", _patience_ns(history, f)
            whys = [
                _muted(node, mute) or _silent(node, done, pipes.get(node, Pipes()), patience_ns)
                for node, done in found
            ]
        else:
            what = f"ended with {error}"
            whys = [of_code(node, done.codeless) for node, done in found if done.codeless]
        told[f] = _sentences(f"{count} of {len(missed[f])} {what}", whys)
    return told


def _sentences(what: str, whys: Sequence[Why]) -> str:
    """What happened, facts of the first nodes that explain it, and each advice once."""
    facts, more = [each.fact for each in whys[:_NODES_TOLD]], len(whys) - _NODES_TOLD
    facts += [f"{more} more nodes"] if more > 1 else [each.fact for each in whys[_NODES_TOLD:]]
    advice = dict.fromkeys(each.advice for each in whys[:_NODES_TOLD] if each.advice)
    return " ".join([f"{what}.", *([f"{'; '.join(facts)}."] if facts else []), *advice])


def _patience_ns(history: Sequence[Op], f: str) -> int:
    """How long a client waits for an answer: the shortest operation that had none."""
    pairs = ((history[at], history[end]) for at, end in completions(history).items())
    return min(end.time - op.time for op, end in pairs if op.f == f and error_text(end) == TIMEOUT)


def _mute(history: Sequence[Op]) -> dict[str, Op]:
    """The nodes that are mute at the end, with when each became that."""
    found: dict[str, Op] = {}
    for op in (op for op in history if op.process == NEMESIS):
        if op.f == MUTE:
            found[op.value["node"]] = op
        elif op.f == HEARD:
            found.pop(op.value["node"], None)
    return found


def _muted(node: str, mute: Mapping[str, Op]) -> Why | None:
    if node not in mute:
        return None
    value, time_ns = mute[node].value, mute[node].time
    what = f"it sent a message {value['role']} {reason(value)}"
    return Why(f"{node} is not heard from {time_ns / _NS:.3f} s on, because {what}", advice(value))


def _silent(node: str, done: "Deeds", pipes: Pipes, patience_ns: int) -> Why:
    """Why a node that was heard all the time did not answer."""
    if done.unnamed:
        return _unnamed(node, done.unnamed)
    if done.slowest_ns > patience_ns:
        took, limit = f"{done.slowest_ns / _NS:.1f} s", f"{patience_ns / _NS:.0f} s"
        return Why(f"{node} answered, but up to {took} after the request", _IN_TIME.format(limit))
    never = "never answered a client"
    if done.answered:
        never = "answered other requests, but none of these"
    why = of_torn(node, pipes) or done.wrong
    if not why and done.unheeded > 1 and done.last and done.is_answered and not pipes.unread_bytes:
        why = of_unheeded(node, done.last, done.refusal[2] if done.refusal else None, done.unheeded)
    if not why and (done.refusals > 1 or not pipes.unread_bytes):  # it has read a refusal
        why = done.refused(node)
    is_stuck = not done.answered or bool(pipes.unread_bytes)
    if not why and done.last and (is_stuck or done.last["dest"] in SERVICES):
        why = of_message(node, done.last, pipes)
    found = Why(f"{node} {never}: {why.fact}", why.advice) if why else Why(f"{node} {never}")
    return with_error(found, pipes)


def _unnamed(node: str, message: Sent) -> Why:
    body = message["body"]
    what = f"{body.get('type')} to {message['dest']} (message {message['id']} of the journal)"
    named = "without in_reply_to"
    if "in_reply_to" in body:
        named = f"with in_reply_to {edn.dumps(body['in_reply_to'])}, which no request has"
    return Why(f"{node} did send {what} {named}, so no client could tell what it answers")


# ---------------------------------------------------------------- what a node did


@dataclass(slots=True)
class Deeds:
    """What a node did, by the journal."""

    answered: bool = False  # a request of a client
    slowest_ns: int = 0  # of its answers
    unnamed: Sent | None = None  # the first answer that names no request
    codeless: Sent | None = None  # the first error without a code that is known
    wrong: Why | None = None  # the first message that can have no answer
    last: Sent | None = None
    unheeded: int = 0  # messages that it was sent after its last one
    is_answered: bool = False  # by a service, after its last message
    refusal: tuple[str, str, int] | None = None  # service, type of the request, code
    refusals: int = 0  # in a row

    def refused(self, node: str) -> Why | None:
        """What follows from a service that refused what it was asked last."""
        if self.refusal is None or self.refusals < _REFUSALS_MIN.get(self.refusal[2], 1):
            return None
        return of_refusals(node, *self.refusal, self.refusals)


class _Reader:
    """Reads a journal; `deeds` has what each node did."""

    def __init__(self) -> None:
        self.deeds: defaultdict[str, Deeds] = defaultdict(Deeds)
        self._asked_ns: dict[tuple[str, int], int] = {}  # by client and msg_id
        self._types: dict[
            tuple[str, str, int], str
        ] = {}  # of requests: by node, service and msg_id

    def sent(self, by: str, message: Sent, time_ns: int) -> None:
        """A message entered the network."""
        dest, body = message["dest"], message["body"]
        if is_client(by):
            self._asked_ns[by, _number(body.get("msg_id"))] = time_ns
            self.deeds[dest].unheeded += 1
        elif by in SERVICES:
            self._from_service(by, dest, body)
        else:
            self._from_node(by, message, time_ns)

    def _from_service(self, service: str, node: str, body: Sent) -> None:
        request = self._types.pop((node, service, _number(body.get("in_reply_to"))), None)
        done, code = self.deeds[node], body.get("code")
        refusal = (service, request, code) if request and type(code) is int else None
        pair = [each[1:] for each in (done.refusal, refusal) if each]
        if pair != [
            ("cas", _ABSENT),
            ("read", _ABSENT),
        ]:  # the read says no more than the cas before it
            done.refusals = done.refusals + 1 if refusal == done.refusal else 1
            done.refusal = refusal
        done.unheeded, done.is_answered = done.unheeded + 1, True

    def _from_node(self, node: str, message: Sent, time_ns: int) -> None:
        """A node sent a message, in its own name or in another."""
        done, dest, body = self.deeds[node], message["dest"], message["body"]
        done.last, done.unheeded, done.is_answered = message, 0, False
        if (
            node,
            dest,
            _number(body.get("in_reply_to")),
        ) not in self._types:  # else it asked itself
            done.wrong = done.wrong or wrong(node, message)
        if dest in SERVICES or dest == node:
            self._types[node, dest, _number(body.get("msg_id"))] = str(body.get("type"))
        elif is_client(dest):
            asked_ns = self._asked_ns.get((dest, _number(body.get("in_reply_to"))))
            if asked_ns is None:
                done.unnamed = done.unnamed or message
            elif body.get("type") != "init_ok":
                done.answered = True
                done.slowest_ns = max(done.slowest_ns, time_ns - asked_ns)
            if body.get("type") == "error" and not is_known(body.get("code")):
                done.codeless = done.codeless or message


def _deeds(events: Iterable[Event]) -> dict[str, Deeds]:
    reader = _Reader()
    for event in events:
        if event["type"] == "send":
            reader.sent(sender(event), event["message"], event["time"])
    return reader.deeds


def _number(value: object) -> int:
    """The value if it can be the number of a request; else one that no request has."""
    return value if type(value) is int else -1
