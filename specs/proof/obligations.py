"""What must be shown so that a model keeps its laws, and the solvers that show it.

A law is an obligation of the initial state and of each action, behind which it follows from the laws before.
z3 is asked first, with few facts and then with all. cvc5 is asked for the same, with the facts that z3 used.
Limits are counts of a solver's work, so verdicts do not depend on the clock. `unknown` is no proof.
"""

import time
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

import cvc5
import z3

from specs.proof.language import Model, Term, terms

PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"
# Of z3's resource counts; a second is about 3 million. Another seed is often quick.
LIMITS = (600_000, 20_000_000)
SEEDS = (0, 1, 2)
CVC5_LIMIT = 500_000  # of cvc5's
INITIAL, FOLLOWS = "Init", "Invariant"
_WORDS = {"unsat": PROVED, "sat": REFUTED}


class Obligation(NamedTuple):
    """A law follows from the hypotheses, which are those of a part of the proof."""

    part: str
    law: str
    hypotheses: Mapping[str, Term]
    goal: Term

    @property
    def name(self) -> str:
        return f"{self.part}/{self.law}"


class Answer(NamedTuple):
    """What both solvers said of an obligation, and their seconds."""

    z3: str
    cvc5: str
    z3_s: float
    cvc5_s: float


def parts(model: Model) -> tuple[str, ...]:
    """All parts of a proof."""
    return INITIAL, FOLLOWS, *model.actions


@cache
def laws_before(model: Model) -> dict[str, Term]:
    """What is known in the state in which an action begins."""
    return terms({**model.axioms, **model.laws}, model.at())


def hypotheses(model: Model, part: str) -> dict[str, Term]:
    """What is known in the state of a part, and of the action that it is."""
    if part == INITIAL:
        return terms({**model.axioms, INITIAL: model.initial}, model.at())
    return laws_before(model) | ({part: model.step(part)[0].when} if part in model.actions else {})


@cache
def obligations(model: Model, part: str, law: str = "") -> tuple[Obligation, ...]:
    """Those of one action, of `INITIAL`, or of `FOLLOWS`; none for a law of which an action changes nothing.

    law: of this one alone.
    """
    s, facts = model.at(), hypotheses(model, part)
    t = model.at(**model.step(part)[0].becomes)
    steps = {name: lambda t, of=of: of(s, t) for name, of in model.of_steps.items()}
    laws = model.follows if part == FOLLOWS else model.laws
    goals = {**laws, **(steps if part in model.actions else {})}
    asked = {name: formula(t) for name, formula in goals.items() if law in ("", name)}
    return tuple(
        Obligation(part, name, facts, goal)
        for name, goal in asked.items()
        if name not in facts or not goal.eq(facts[name])
    )


def prove(obligation: Obligation) -> Answer:
    """Ask z3, and cvc5 when z3 has a proof; where z3 has none, that stands."""
    began = time.process_time()
    verdict, core = _ask_z3(obligation)
    asked = time.process_time()
    agrees = _ask_cvc5(core, obligation.goal)
    return Answer(verdict, agrees, asked - began, time.process_time() - asked)


def _ask_z3(obligation: Obligation) -> tuple[str, list[Term]]:
    """The verdict, and the facts of which z3 made use."""
    all_facts = obligation.hypotheses
    few = {n: all_facts[n] for n in (obligation.part, obligation.law) if n in all_facts}
    wider = ((all_facts, limit, seed) for limit in LIMITS for seed in SEEDS)
    for facts, limit, seed in ((few, LIMITS[0], 0), *wider):
        context = z3.Context()  # of its own: what was asked before changes nothing
        solver = z3.Solver(ctx=context)
        solver.set("auto_config", False)
        solver.set("smt.mbqi", False)
        solver.set("smt.random_seed", seed)
        solver.set("rlimit", limit)
        for name, fact in facts.items():
            solver.assert_and_track(fact.translate(context), name)
        solver.add(z3.Not(obligation.goal).translate(context))
        if solver.check() == z3.unsat:
            return PROVED, [facts[str(name)] for name in solver.unsat_core()]
    return UNKNOWN, list(all_facts.values())


def _ask_cvc5(facts: Iterable[Term], goal: Term) -> str:
    context = z3.Context()  # here, too: how terms are named in the text depends on those before
    text = z3.Solver(ctx=context)
    text.add(*(each.translate(context) for each in (*facts, z3.Not(goal))))
    solver = cvc5.Solver()
    solver.setOption("rlimit-per", str(CVC5_LIMIT))
    # A quantifier inside keeps its place, or no term calls for it.
    solver.setOption("prenex-quant", "none")
    parser = cvc5.InputParser(solver)
    script = f"(set-logic ALL)\n{text.to_smt2()}"
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "obligation")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, parser.getSymbolManager()))
    return _WORDS.get(said.strip(), UNKNOWN)
