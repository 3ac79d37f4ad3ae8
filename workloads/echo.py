"""Echo: the smallest workload. A client sends `echo` with any payload and expects it back.

    {"type": "echo", "echo": "Please echo 7"}  ->  {"type": "echo_ok", "echo": "Please echo 7"}

The verdict is invalid when a completed operation got back something else, an error, or nothing in time,
with one error for each. Operations that were under way when a run was stopped are left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from runs import edn
from runs.history import TIMEOUT, Keyword, Op, completions, error_text, keywords
from workloads.interface import (
    Draft,
    Finding,
    Judge,
    Result,
    Setting,
    Steps,
    Workload,
    by_history,
)
from workloads.mixes import Endless
from workloads.replies import ANY, Stateless, ask


def _echo(node: str, op: Op) -> Steps:
    reply = yield from ask(node, {"type": "echo", "echo": op.value}, echo=ANY)
    return {Keyword(key): value for key, value in reply.items()}


def check(history: Sequence[Op]) -> Result:
    """Compare each completion with its request; the result has `valid?` and `errors`."""
    errors = [
        ["Expected a message with :echo", asked.value, "But received", completed.value]
        for asked, completed in _wrong(history)
    ]
    return keywords(valid=not errors, errors=errors)


def _wrong(history: Sequence[Op]) -> Iterator[tuple[Op, Op]]:
    """The operations that did not get back what they sent: invocation and completion."""
    for halves in completions(history).items():
        asked, completed = (history[at] for at in halves)
        got = completed.value.get("echo") if isinstance(completed.value, dict) else None
        if asked.f == "echo" and asked.value != got:
            yield asked, completed


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """One finding for all echoes that were not what was sent."""
    if not result["errors"]:
        return []
    asked, completed = next(_wrong(history))
    sentence = f"{json.dumps(asked.value)} was sent, and {_came(completed)}."
    return [Finding("wrong-echo", True, len(result["errors"]), sentence, [asked, completed])]


def _came(completed: Op) -> str:
    """What came instead of the echo."""
    if completed.type == "ok":
        return f"this came back: {edn.dumps(completed.value)}"
    error = error_text(completed).removeprefix("indeterminate: ")
    return "no answer came in time" if error == TIMEOUT else f"what came back is no echo: {error}"


JUDGE = Judge(by_history(check), explain)


def build(setting: Setting) -> Workload:
    """The workload for this run; each operation asks for one of 128 sentences."""
    random = setting.random("echo")
    return Workload(
        generator=Endless(lambda: Draft("echo", f"Please echo {random.randrange(128)}")),
        open_client=partial(Stateless, perform=_echo),
        judge=JUDGE,
    )
