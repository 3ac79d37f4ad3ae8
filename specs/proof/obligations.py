"""What must be shown so that a model keeps its laws, and the solvers that show it.

A law is an obligation of the initial state and of each action: behind the action it follows from the invariant.
z3 is asked first, with few facts and then with all. cvc5 is asked for the same, with the facts that z3 used.
Limits are counts of a solver's work, so verdicts do not depend on the clock. `unknown` is no proof.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import cvc5
import z3

from specs.proof.language import Model, Term

PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"
LIMITS = (
    600_000,
    20_000_000,
)  # of z3's resource counts; a second is about 3 million. Another seed is often quick.
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
    """What both solvers said of an obligation, and z3's seconds."""

    z3: str
    cvc5: str
    duration_s: float

    @property
    def disagrees(self) -> bool:
        return {self.z3, self.cvc5} == {PROVED, REFUTED}


def obligations(model: Model, part: str) -> Iterator[Obligation]:
    """Those of one action, of `INITIAL`, or of `FOLLOWS`; none for a law of which an action changes nothing."""
    s = model.before()
    invariant, axioms = model.invariant(s), model.axioms
    if part == INITIAL:
        hypotheses, goals = {**axioms, INITIAL: model.initial(s)}, invariant
    elif part == FOLLOWS:
        hypotheses, goals = {**axioms, **invariant}, model.follows(s)
    else:
        step, _ = model.step(part)
        t = model.after(step)
        hypotheses = {**axioms, **invariant, part: step.when}
        goals = {**model.invariant(t), **model.of_steps(s, t)}
    for law, goal in goals.items():
        if part in (INITIAL, FOLLOWS) or law not in invariant or not goal.eq(invariant[law]):
            yield Obligation(part, law, hypotheses, goal)


def parts(model: Model) -> tuple[str, ...]:
    """All parts of a proof."""
    return INITIAL, FOLLOWS, *model.actions


def prove(obligation: Obligation) -> Answer:
    """Ask z3, and cvc5 when z3 has a proof; where z3 has none, that stands."""
    began = time.perf_counter()
    verdict, core = _ask_z3(obligation)
    duration_s = time.perf_counter() - began
    return Answer(verdict, _ask_cvc5(core, obligation.goal), duration_s)


def _ask_z3(obligation: Obligation) -> tuple[str, list[Term]]:
    """The verdict, and the facts of which z3 made use."""
    hypotheses = obligation.hypotheses
    few = {
        name: hypotheses[name] for name in (obligation.part, obligation.law) if name in hypotheses
    }
    wider = ((hypotheses, limit, seed) for limit in LIMITS for seed in SEEDS)
    attempts = [(few, LIMITS[0], 0), *wider]
    for facts, limit, seed in attempts:
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
            used = {*map(str, solver.unsat_core())}
            return PROVED, [fact for name, fact in facts.items() if name in used]
    return UNKNOWN, list(hypotheses.values())


def _ask_cvc5(facts: Iterable[Term], goal: Term) -> str:
    context = z3.Context()  # here, too: how terms are named in the text depends on those before
    text = z3.Solver(ctx=context)
    text.add(*(each.translate(context) for each in (*facts, z3.Not(goal))))
    solver = cvc5.Solver()
    solver.setOption("rlimit-per", str(CVC5_LIMIT))
    solver.setOption(
        "prenex-quant", "none"
    )  # a quantifier inside keeps its place, or no term calls for it
    parser = cvc5.InputParser(solver)
    script = f"(set-logic ALL)\n{text.to_smt2()}"
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "obligation")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, parser.getSymbolManager()))
    return _WORDS.get(said.strip(), UNKNOWN)
