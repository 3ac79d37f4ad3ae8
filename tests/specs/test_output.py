"""Reading TLC's output and TLA+ values, without TLC."""

from __future__ import annotations

import pytest

from specs import counterexample
from specs.tlc import Outcome, parse


def message(code: int, text: str, severity: int = 0) -> str:
    return f"@!@!@STARTMSG {code}:{severity} @!@!@\n{text}\n@!@!@ENDMSG {code} @!@!@\n"


INIT = message(
    2217, "1: <Initial predicate>\n/\\ log = <<>>\n/\\ view = (a :> [n |-> 0] @@ b :> [n |-> 0])", 4
)
STEP = message(
    2217,
    "2: <Commit line 9, col 5 to line 9, col 20 of module HeadLog>\n/\\ log = <<1,\n  2>>\n"
    "/\\ view = (a :> [n |-> 1] @@ b :> [n |-> 0])",
    4,
)
COUNTS = message(2199, "1,234 states generated, 567 distinct states found, 0 states left on queue.")
VIOLATED = message(2110, "Invariant ViewIsPrefix is violated.", 1)


def test_success() -> None:
    outcome = parse("noise\n" + message(2193, "Model checking completed.") + COUNTS)
    assert (outcome.verdict, outcome.distinct_states, outcome.states) == ("pass", 567, ())


DRAWS, ENDS = message(2188, "Running Random Simulation"), message(2186, "Finished")


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        (DRAWS + ENDS, "pass"),
        (DRAWS + VIOLATED + INIT + ENDS, "violation of ViewIsPrefix"),
        (DRAWS + message(1000, "an exception", 1) + ENDS, "error"),
        (DRAWS, "error"),
        (ENDS, "error"),
    ],
)
def test_a_run_that_draws_behaviours(output: str, verdict: str) -> None:
    assert parse(output).verdict == verdict


def test_violated_invariant_with_its_trace() -> None:
    outcome = parse(VIOLATED + INIT + STEP + COUNTS)
    assert outcome.verdict == "violation of ViewIsPrefix"
    assert [state.action for state in outcome.states] == ["Init", "Commit"]
    assert outcome.states[1].variables["log"] == "<<1,\n  2>>"


@pytest.mark.parametrize(
    ("code", "text", "verdict"),
    [
        (2107, "Invariant TypeOK is violated by the initial state:", "violation of TypeOK"),
        (2112, "Action property Never is violated.", "violation of Never"),
        (2112, "Action property line 63, col 23 of module Log is violated.", "violation of P"),
        (2116, "Temporal properties were violated.", "violation of P"),
        (2114, "Deadlock reached.", "deadlock"),
    ],
)
def test_other_verdicts(code: int, text: str, verdict: str) -> None:
    assert parse(message(code, text, 1), temporal=["P"]).verdict == verdict


def test_lasso_and_stuttering() -> None:
    lasso = parse(message(2116, "x", 1) + INIT + STEP + message(2122, "1: Back to state"), ["P"])
    assert lasso.back_to == 1
    stuttering = parse(message(2116, "x", 1) + INIT + message(2218, "2: Stuttering", 4), ["P"])
    assert stuttering.states[-1].action == "Stuttering"


def test_error_without_java_frames() -> None:
    outcome = parse(message(1000, "TLC threw an exception.\n\tat tlc2.tool\nUnknown operator", 1))
    assert outcome.verdict == "error"
    assert outcome.message == "TLC threw an exception.\nUnknown operator"


def test_no_verdict_at_all_is_an_error() -> None:
    outcome = parse("Killed")
    assert outcome.verdict == "error"
    assert "Killed" in outcome.message


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<<1, -2, None>>", "<<1, -2, None>>"),
        ('[state |-> "open", tail |-> <<>>]', '[state: "open", tail: <<>>]'),
        ("(a :> {1, 2} @@ b :> {})", "[a: {1, 2}, b: {}]"),
        ("(<<a, 0>> :> TRUE)", "[<<a, 0>>: TRUE]"),
        ("1..3", "1..3"),
    ],
)
def test_values(text: str, written: str) -> None:
    assert counterexample.write(counterexample.parse(text)) == written


@pytest.mark.parametrize("text", ["", "<<1", "[a |->", "[a b]"])
def test_what_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match="TLA"):
        counterexample.parse(text)


def test_changes_name_the_part_that_changed() -> None:
    old = counterexample.parse("(a :> [n |-> 0, m |-> 1] @@ b :> 2)")
    new = counterexample.parse("(a :> [n |-> 5, m |-> 1] @@ c :> 3)")
    assert list(counterexample.changes("view", old, new)) == [
        ("view[a].n", "5"),
        ("view[c]", "3"),
        ("view[b]", "(gone)"),
    ]


def test_story_shows_only_what_changed() -> None:
    story = counterexample.story("M/c", parse(VIOLATED + INIT + STEP))
    assert story.splitlines() == [
        "M/c: violation of ViewIsPrefix",
        "   1. Init",
        "   2. Commit",
        "      log = <<1, 2>>",
        "      view[a].n = 1",
    ]


def test_story_of_a_lasso_ends_where_it_goes_back() -> None:
    outcome = parse(message(2116, "x", 1) + INIT + STEP, ["P"])
    looped = Outcome(outcome.verdict, None, outcome.states, back_to=1)
    assert list(counterexample.steps(looped))[-1].endswith("back to step 1, for ever")
