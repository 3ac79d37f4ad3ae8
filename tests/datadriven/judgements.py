"""Plays a transcript of judgements: small histories, and what the judge of their workload says of them.

    > kafka: 0 send x=1@0; 1 poll          the lines of `tests.checker.history_language`
    > kafka strict nodes=n0,n1 concurrency=2: 0 crash       with options of the check
    > txn-list-append: a1=1 a2=1; ! r1=1 r2=   transactions, see `of_transactions`
    > txn-list-append read-committed: a1=1; r1=1            a model that is asked for
    > result lost stable-count             these entries of the last result; all of it without a name

Below stand the verdict, the figures, and each anomaly: its type, `(allowed)` where it does not make the history
invalid, how often it is there, and one case of it, with the operations that show it.
"""

import json
import textwrap
from typing import Any

import workloads
from bench.verdict.wording import left_out
from runs import edn
from runs.history import Keyword, Op, OpType, printable
from tests.checker.history_language import history
from tests.datadriven.runner import Player, chosen_of
from workloads.interface import Finding, Placement

FLAGS = ("strict", "ww_deps")
ORDERS = ("apart", "session")


class Judgements(Player):
    """Judges one history after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._result: dict[Any, Any] = {}

    def command(self, command: str) -> list[str]:
        head, _, text = command.partition(":")
        name, *words = head.split()
        if name == "result":
            found = {key: printable(each) for key, each in self._result.items()}
            chosen = {key: each for key, each in found.items() if key in words or not words}
            return edn.dumps(chosen, pretty=True).splitlines()
        if name.startswith("txn-"):
            ops = of_transactions(text, words, is_list=name == "txn-list-append")
        else:
            ops = history(text.replace(";", "\n"))
        return self._judged(name, ops, words)

    def _judged(self, name: str, ops: list[Op], words: list[str]) -> list[str]:
        judge, options = workloads.judge(name), options_of(words)
        self._result = judge.check(ops, options)
        verdict = {True: "valid", False: "invalid"}.get(self._result["valid?"], "unknown")
        figures = [judge.figures(self._result)] if judge.figures else []
        findings = judge.findings(self._result, ops, Placement.of(options, ops))
        return ["; ".join([verdict, *figures]), *(line for each in findings for line in told(each))]


def options_of(words: list[str]) -> dict[str, Any]:
    """Options of a check: flags, `nodes` and `concurrency`, and models."""
    chosen = chosen_of(words)
    flags = dict.fromkeys((word for word in words if word in FLAGS), True)
    models = [word for word in words if word not in (*FLAGS, *ORDERS) and "=" not in word]
    placed = (
        {"nodes": chosen["nodes"].split(","), "concurrency": int(chosen["concurrency"])}
        if chosen
        else {}
    )
    return {**flags, **placed, "consistency_models": models}


def told(finding: Finding) -> list[str]:
    """An anomaly in lines."""
    allowed = "" if finding.invalidating else " (allowed)"
    sentence = textwrap.wrap(
        f"{finding.type}{allowed}, {finding.count}: {finding.sentence}", 108, subsequent_indent="  "
    )
    return [
        *sentence,
        *(f"  [{op.index}] {op.f} {edn.dumps(op.value)}{left_out(op)}" for op in finding.witness),
    ]


def of_transactions(text: str, words: list[str], *, is_list: bool) -> list[Op]:
    """Transactions of one process each, all at the same time.

    Words: `apart`, one after the other; `session`, the same by one process.

    `r1=12` reads 1 and 2 of key 1 (`r1=` nothing; `r1=[1.5]` is JSON), `a1=3` appends 3 to it, `w1=3` writes 3.
    `!` before a transaction: it failed. `?`: nobody knows.
    """
    halves: list[tuple[OpType, int, list[list[Any]]]] = []
    for process, line in enumerate(text.split(";") if text.strip() else ()):
        first, *rest = line.split()
        kind: OpType = {"!": "fail", "?": "info"}.get(first, "ok")  # type: ignore[assignment]
        value = [
            _micro(word, is_list=is_list) for word in (rest if kind != "ok" else [first, *rest])
        ]
        asked = [[f, key, None if f == "r" else each] for f, key, each in value]
        halves += [("invoke", process, asked), (kind, process, value if kind == "ok" else asked)]
    if not {*ORDERS} & {*words}:
        halves.sort(key=lambda half: half[0] != "invoke")
    return [
        Op(index, index, kind, 0 if "session" in words else process, "txn", value)
        for index, (kind, process, value) in enumerate(halves)
    ]


def _micro(word: str, *, is_list: bool) -> list[Any]:
    """A read or a write of a transaction."""
    f = {"r": "r", "w": "w", "a": "append"}[word[0]]
    text = word[3:]
    value: Any = json.loads(text) if text else None
    if f == "r" and is_list and text.isdigit():
        value = [int(each) for each in text]
    return [Keyword(f), int(word[1]), value]
