"""The bench names the first mistake of each node of a learner, and blames nothing else."""

from pathlib import Path

import pytest

from tests.mistakes.__main__ import page
from tests.mistakes.mistake import PAGE, Mistake, mistakes, told
from tests.programs import need

MISTAKES = [each for rows in mistakes().values() for each in rows]
# Of advice that the bench gives; the wrong one is worse than none.
ADVICE = (
    "flush stdout",
    "(\\n)",
    "message on stderr",
    "what reads stdin",
    "an integer of its own",
    "create_if_not_exists",
    "`src` of its request",
    "Without a `code`",
    "Did you mean",
    "last error on stderr",
    "Read the key again",
    "its field `value`",
    "is undefined",
    "wait for no answer where",
    "Add once",
    "Use cas",
    "the others must learn",
    "Wait for that answer",
    "Take the `msg_id` of each",
    "differs by",
    "part of each node",
    "an older state",
    "write the message first",
    "with `msgs`",
    "need no answer",
    "other nodes alone",
    "beyond 2^53",
    "fill in what each read finds",
    "leave & out",
    "acknowledge what is kept",
    "Answer that error",
    "must not drop",
    "what is new",
    "and those behind it",
    "npm",
)


def test_the_page_is_made_of_the_table() -> None:
    assert page() == PAGE.read_text(), "write it: .venv/bin/python -m tests.mistakes"


@pytest.mark.process
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.because)
def test_the_bench_names_the_mistake(mistake: Mistake, tmp_path: Path) -> None:
    if mistake.javascript:
        need("node")
    output = told(mistake, tmp_path)
    assert mistake.is_told_by(output), output
    assert [each for each in ADVICE if each in output and each not in mistake.said] == []


@pytest.mark.process
def test_where_nothing_failed_no_error_is_told(tmp_path: Path) -> None:
    node = """
print("ValueError: of no consequence", file=sys.stderr)
for message, body in requests():
    reply(message, {"type": "echo_ok", "echo": body["echo"]})
"""
    output = told(Mistake("", "", python=node), tmp_path)
    assert "✔ VALID: no anomaly found." in output
    assert "ValueError" not in output
