"""Echo: the smallest workload. A client sends `echo` with any payload and expects it back.

    {"type": "echo", "echo": "Please echo 7"}  ->  {"type": "echo_ok", "echo": "Please echo 7"}

The verdict is invalid when a completed operation got back something else, or nothing in time, with
one error for each. Operations that were under way when a run was stopped are left out.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runs import edn
from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.interface import (
    Draft,
    Finding,
    Judge,
    Result,
    Rpc,
    Setting,
    Steps,
    Workload,
    by_history,
)
from workloads.mixes import Endless
from workloads.replies import ANY, require


class EchoClient:
    """A client that sends the operation's value to its node."""

    def __init__(self, node: str) -> None:
        self.node = node

    def invoke(self, op: Op) -> Steps:
        request = {"type": "echo", "echo": op.value}
        reply = yield Rpc(self.node, request)
        require(request, reply, echo=ANY)
        return {Keyword(key): value for key, value in reply.items()}


def check(history: Sequence[Op]) -> Result:
    """Compare each completion with its request; the result has `valid?` and `errors`."""
    asked: dict[Any, Any] = {}
    errors = []
    for op in history:
        if op.f != "echo":
            continue
        if op.type == "invoke":
            asked[op.process] = op.value
            continue
        wanted = asked.pop(op.process)
        got = op.value.get("echo") if isinstance(op.value, dict) else None
        if wanted != got:
            errors.append(["Expected a message with :echo", wanted, "But received", op.value])
    return keywords(valid=not errors, errors=errors)


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """One finding for all echoes that were not what was sent."""
    if not result["errors"]:
        return []
    _, wanted, _, got = result["errors"][0]
    came = (
        f"this came back: {edn.dumps(got)}" if isinstance(got, dict) else "no answer came in time"
    )
    sentence = f"{json.dumps(wanted)} was sent, and {came}."
    witness = [op for op in history if op.f == "echo" and op.value in (wanted, got)][:2]
    return [Finding("wrong-echo", True, len(result["errors"]), sentence, witness)]


def build(setting: Setting) -> Workload:
    """The workload for this run; each operation asks for one of 128 sentences."""
    random = setting.random("echo")
    generator = Endless(lambda: Draft("echo", f"Please echo {random.randrange(128)}"))
    return Workload(generator=generator, open_client=EchoClient, judge=judge())


def judge() -> Judge:
    """Whether every echo is what was sent."""
    return Judge(by_history(check), explain)
