"""Why a run went as it did: the faults at the time of an anomaly, and why an operation never succeeded.

*Circumstances.* An anomaly begins with the earliest operation of its witness. What was in force at any time
between the invocation and the completion of that operation may have to do with it. So may what was injected
from then until the last operation of the witness or, where something is missing, until the end of the run. A
final read that lacks an add shows no more than that one of the adds was lost: such an anomaly began with any of
its `causes`, so all that was in force while they were made is told.

*Reasons.* The history has the errors. A request without an answer leaves no more than `net-timeout` there, so
the journal of messages says the rest: a node that never answered, or one whose answers name no request
(`in_reply_to`). An answer that comes too late is not in the journal: it mutes the node (`bench.mute`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.failure import FLUSH
from runs import edn
from runs.faults import Injection, injections
from runs.history import NEMESIS, TIMEOUT, Op, completions, error_text
from runs.traffic import Event, is_client
from workloads.interface import Finding, Placement

_NS = 1e9
_TOLD_MAX = 6  # of many faults, the first
_NODES_TOLD = 4


def with_circumstances(findings: Sequence[Finding], history: Sequence[Op]) -> list[Finding]:
    """The findings, each with its `circumstances`; unchanged when the history has no faults."""
    injected = injections(history)
    if not injected:
        return list(findings)
    return [
        replace(finding, circumstances=_circumstances(finding, history, injected))
        for finding in findings
    ]


def _circumstances(finding: Finding, history: Sequence[Op], injected: list[Injection]) -> str:
    if not finding.witness:
        return ""
    first = min(finding.causes or finding.witness, key=lambda op: op.time)
    invoked_ns, completed_ns = _duration(first, history)
    began = f"{first.time / _NS:.3f} s"
    if finding.causes:
        completed_ns = max(op.time for op in finding.causes)
        began = f"between {invoked_ns / _NS:.3f} s and {completed_ns / _NS:.3f} s"
    last_ns = history[-1].time if finding.at_end else max(op.time for op in finding.witness)
    later = [each for each in injected if completed_ns < each.start_ns <= last_ns]
    until = "the end of the run" if finding.at_end else f"{last_ns / _NS:.3f} s"
    then = f" Then, until {until}: {'; '.join(_few(later))}." if later else ""
    return f"It began {began} into the run, {_meanwhile(invoked_ns, completed_ns, injected)}{then}"


def _meanwhile(invoked_ns: int, completed_ns: int, injected: Sequence[Injection]) -> str:
    present = [
        each for each in injected if each.start_ns <= completed_ns and each.end_ns >= invoked_ns
    ]
    if present:
        return f"while {listed(_few(present))}."
    past = [each for each in injected if each.end_ns < invoked_ns]
    if not past:
        return "before any fault."
    latest = max(past, key=lambda each: each.end_ns)
    ago_s = (invoked_ns - latest.end_ns) / _NS
    return f"{ago_s:.3f} s after the latest fault had ended ({latest.text})."


def _duration(op: Op, history: Sequence[Op]) -> tuple[int, int]:
    """When the operation was invoked and when it was completed, if it was."""
    for halves in completions(history).items():
        invoked, completed = (history[position] for position in halves)
        if op.index in (invoked.index, completed.index):
            return invoked.time, completed.time
    return op.time, op.time


def _few(injected: Sequence[Injection]) -> list[str]:
    texts = [each.text for each in injected[:_TOLD_MAX]]
    more = len(injected) - len(texts)
    return [*texts, f"{more} more faults"] if more > 1 else [each.text for each in injected]


def listed(texts: Sequence[str]) -> str:
    """Texts as a list in a sentence."""
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


# ---------------------------------------------------------------- reasons


def reasons(
    history: Sequence[Op],
    never: Iterable[str],
    place: Placement,
    events: Callable[[], Iterable[Event]],
) -> dict[str, str]:
    """For each `f` in `never`, none of whose operations succeeded, a sentence that says why.

    `events` reads the journal. It is called only when an operation had no answer.
    """
    wanted = list(never)
    missed = {f: [op for op in _completed(history) if op.f == f] for f in wanted}
    errors = {
        f: Counter(map(error_text, ops)).most_common(1)[0] for f, ops in missed.items() if ops
    }
    silent = [f for f, (error, _) in errors.items() if error == TIMEOUT]
    answers = _answers(events()) if silent else {}
    told = {}
    for f, (error, count) in errors.items():
        of_all = f"{count} of {len(missed[f])}"
        if f in silent:
            nodes = dict.fromkeys(place.node(int(op.process)) for op in missed[f])
            who = [_of_node(node, answers.get(node, [])) for node in nodes]
            more = [f"{len(who) - _NODES_TOLD} more nodes"] if len(who) > _NODES_TOLD else []
            told[f] = f"{of_all} had no answer in time. {'; '.join(who[:_NODES_TOLD] + more)}."
            if not answers.keys() & nodes.keys():
                told[f] += f" {FLUSH}"
        else:
            told[f] = f"{of_all} ended with {error}."
    return told


def _completed(history: Iterable[Op]) -> Iterator[Op]:
    return (op for op in history if op.type != "invoke" and op.process != NEMESIS)


def _answers(events: Iterable[Event]) -> dict[str, list[tuple[Event, bool]]]:
    """What each node sent to clients, and whether that names a request."""
    asked: set[tuple[str, int]] = set()
    found: dict[str, list[tuple[Event, bool]]] = {}
    for event in events:
        message = event["message"]
        body = message["body"]
        if event["type"] != "send" or body.get("type") in ("init", "init_ok"):
            continue
        if is_client(message["src"]):
            asked.add((message["src"], _number(body.get("msg_id"))))
        elif is_client(message["dest"]):
            named = (message["dest"], _number(body.get("in_reply_to")))
            found.setdefault(message["src"], []).append((event, named in asked))
    return found


def _number(value: Any) -> int:
    """The value if it can be the number of a request; else one that no request has."""
    return value if type(value) is int else -1


def _of_node(node: str, answers: Sequence[tuple[Event, bool]]) -> str:
    if not answers:
        return f"{node} never answered a client"
    lost = next((event for event, is_named in answers if not is_named), None)
    if lost is None:
        return f"{node} answered other requests, but none of these"
    return f"{node} did send {_named(lost['message'])}, so no client could tell what it answers"


def _named(message: Mapping[str, Any]) -> str:
    body = message["body"]
    what = f"{body.get('type')} to {message['dest']} (message {message['id']} of the journal)"
    if "in_reply_to" not in body:
        return f"{what} without in_reply_to"
    return f"{what} with in_reply_to {edn.dumps(body['in_reply_to'])}, which no request has"
