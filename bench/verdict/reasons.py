"""Why no operation of a kind succeeded, in a sentence for each kind.

The history has the errors. A request without an answer leaves no more than `net-timeout` there, and an error
without a code no more than `unknown`. So the journal of messages says the rest: what each node sent, what
services answered it, and whether its answers name a request (`in_reply_to`) and came in time. An answer that
comes after its client has left is not in the journal: it mutes the node (`bench.net`), which the history says.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.net import advice
from bench.verdict.following import Deeds, Following
from bench.verdict.silence import (
    Pipes,
    Sent,
    Why,
    of_code,
    of_message,
    of_refusals,
    of_torn,
    of_unheeded,
    with_error,
)
from runs import edn
from runs.faults import HEARD, MUTE, reason
from runs.history import NEMESIS, NS, TIMEOUT, Op, completions, error_text
from runs.traffic import SERVICES, Event
from workloads.interface import UNKNOWN_ERROR, Placement

_NODES_TOLD = 4
_REFUSALS_MIN = {22: 3}  # by code: fewer in a row are usual, as another node was first


def reasons(
    history: Sequence[Op],
    never: Iterable[str],
    place: Placement,
    events: Callable[[], Iterable[Event]],
    pipes: Mapping[str, Pipes] = {},
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
    following, told, mute = Following(), {}, _mute(history)
    for event in events() if unclear else ():
        following.add(event)
    for f, (error, count) in errors.items():
        nodes = list(dict.fromkeys(place.node(int(op.process)) for op in missed[f]))
        found = ((node, following.deeds[node]) for node in nodes)
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
    return Why(f"{node} is not heard from {time_ns / NS:.3f} s on, because {what}", advice(value))


def _silent(node: str, done: Deeds, pipes: Pipes, patience_ns: int) -> Why:
    """Why a node that was heard all the time did not answer."""
    if done.unnamed:
        return _unnamed(node, done.unnamed)
    if done.slowest_ns > patience_ns:
        took, limit = f"{done.slowest_ns / NS:.1f} s", f"{patience_ns / NS:.0f} s"
        return Why(
            f"{node} answered, but up to {took} after the request",
            f"A client waits {limit} for an answer.",
        )
    others = "answered other requests, but none of these"
    never = others if done.answered else "never answered a client"
    why = of_torn(node, pipes) or done.wrong
    if not why and done.unheeded > 1 and done.last and done.is_answered and not pipes.unread_bytes:
        why = of_unheeded(node, done.last, done.refusal[2] if done.refusal else None, done.unheeded)
    if not why and (done.refusals > 1 or not pipes.unread_bytes):  # it has read a refusal
        why = _refused(node, done)
    is_stuck = not done.answered or bool(pipes.unread_bytes)
    if not why and done.last and (is_stuck or done.last["dest"] in SERVICES):
        why = of_message(node, done.last, pipes)
    found = Why(f"{node} {never}: {why.fact}", why.advice) if why else Why(f"{node} {never}")
    return with_error(found, pipes)


def _unnamed(node: str, message: Sent) -> Why:
    body = message["body"]
    what = f"{body.get('type')} to {message['dest']} (message {message['id']} of the journal)"
    named = (
        f"with in_reply_to {edn.dumps(body['in_reply_to'])}, which no request has"
        if "in_reply_to" in body
        else "without in_reply_to"
    )
    return Why(f"{node} did send {what} {named}, so no client could tell what it answers")


def _refused(node: str, done: Deeds) -> Why | None:
    """What follows from a service that refused what it was asked last."""
    if done.refusal is None or done.refusals < _REFUSALS_MIN.get(done.refusal[2], 1):
        return None
    return of_refusals(node, *done.refusal, done.refusals)
