"""TwoStepAssign repaired (specs/TwoStepAssign/TwoStepAssign.tla) for any number of writers and offsets."""

from collections.abc import Mapping

from z3 import And, If, Implies, IntVal, Not, Or

from specs.manifest import Configuration
from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import YES, Formulas, Language, Model, Step, Symbols, Term, Wrong, put

LOGIC = Language(w="Writer", i=int, p=bool)
each = LOGIC.each
FACTS = LOGIC.symbols(range_first="i", range_last="i")
STATE = LOGIC.symbols(
    **{"next": "i", "pending": "i", "kind": "i i", "cursor": "i", "compactor": "i"},
    **{"phase": "w i", "seen_next": "w i", "seen_pending": "w i", "own": "w i", "readable": "i p"},
)
F = Symbols(**FACTS)
EMPTY, WAL, COMPACTED, TOMBSTONE = map(IntVal, range(4))  # kinds of an entry of the index
IDLE, READ, READY, ASSIGNED = map(IntVal, range(4))  # phases of a writer
START, WRITE, DELETE, MOVE, DONE = map(IntVal, range(5))  # what a compactor does next

# Decisions have the names of TwoStepAssign.tla.
DEFINITIONS: Formulas = {
    "in_range": lambda s, i: And(F.range_first <= i, i <= F.range_last),
    "is_replaced": lambda s, i: And(F.range_first <= i, i < F.range_last),
    # A reader finds an entry of the index that covers offset i.
    "is_readable": lambda s, i, kind: Or(
        kind(i) == WAL, And(kind(F.range_last) == COMPACTED, s.in_range(i))
    ),
    "set_index": lambda s, kind: {
        "kind": kind,
        "readable": lambda i: Or(s.readable(i), s.is_readable(i, kind)),
    },
    "materialise": lambda s, offset: s.set_index(
        lambda i: If(And(i == offset, offset != 0), s.Put(s.kind(i)), s.kind(i))
    ),
    "is_seen": lambda s, w: And(s.next == s.seen_next(w), s.pending == s.seen_pending(w)),
    "Put": lambda s, old: If(old == EMPTY, WAL, old),
    "DeletedEntry": lambda s: TOMBSTONE,
    "MayAppend": lambda s: YES,
    "MayCompact": lambda s: YES,
    "NextAfter": lambda s: s.next + 1,
    "CursorAfter": lambda s: F.range_last + 1,
    "PendingAfter": lambda s: s.next,
}
ACTIONS: Formulas = {
    "ReadCounter": lambda s, w: Step(
        And(s.phase(w) == IDLE, s.MayAppend()),
        {
            **{"phase": put(s.phase, w, READ), "own": put(s.own, w, 0)},
            "seen_next": put(s.seen_next, w, s.next),
            "seen_pending": put(s.seen_pending, w, s.pending),
        },
    ),
    "MaterialisePending": lambda s, w: Step(
        s.phase(w) == READ,
        {"phase": put(s.phase, w, READY), **s.materialise(s.seen_pending(w))},
    ),
    "CasCounter": lambda s, w: Step(
        s.phase(w) == READY,
        {
            "phase": put(s.phase, w, If(s.is_seen(w), ASSIGNED, IDLE)),
            "own": put(s.own, w, If(s.is_seen(w), s.next, 0)),
            "next": If(s.is_seen(w), s.NextAfter(), s.next),
            "pending": If(s.is_seen(w), s.PendingAfter(), s.pending),
        },
    ),
    "MaterialiseOwn": lambda s, w: Step(
        s.phase(w) == ASSIGNED,
        {
            **{"phase": put(s.phase, w, IDLE), "own": put(s.own, w, 0)},
            **s.materialise(s.own(w)),
        },
    ),
    "WriterCrash": lambda s, w: Step(
        s.phase(w) != IDLE, {"phase": put(s.phase, w, IDLE), "own": put(s.own, w, 0)}
    ),
    "Help": lambda s: Step(
        And(s.pending != 0, s.kind(s.pending) == EMPTY), s.materialise(s.pending)
    ),
    "CompactStart": lambda s: Step(
        And(
            And(s.compactor == START, s.MayCompact()),
            each(lambda i: Implies(s.in_range(i), s.kind(i) == WAL)),
        ),
        {"compactor": WRITE},
    ),
    "CompactWrite": lambda s: Step(
        s.compactor == WRITE,
        {"compactor": DELETE, **s.set_index(put(s.kind, F.range_last, COMPACTED))},
    ),
    "CompactDelete": lambda s: Step(
        s.compactor == DELETE,
        {
            "compactor": MOVE,
            **s.set_index(lambda i: If(s.is_replaced(i), s.DeletedEntry(), s.kind(i))),
        },
    ),
    "CompactCursor": lambda s: Step(
        s.compactor == MOVE, {"compactor": DONE, "cursor": s.CursorAfter()}
    ),
}
LAWS: Formulas = {
    "TypeOK": lambda s: And(
        And(s.next >= 1, s.pending >= 0, s.pending < s.next),
        each(lambda i: And(s.kind(i) >= EMPTY, s.kind(i) <= TOMBSTONE)),
        Or(s.cursor == 1, s.cursor == F.range_last + 1),
    ),
    "CommittedStaysReadable": lambda s: each(
        lambda i: Implies(s.readable(i), s.is_readable(i, s.kind))
    ),
    "NoOffsetLost": lambda s: each(
        lambda i: Implies(And(i >= 1, i < s.next, i != s.pending), s.is_readable(i, s.kind))
    ),
    "CompactedStays": lambda s: Implies(
        s.cursor > F.range_last,
        And(
            s.kind(F.range_last) == COMPACTED,
            each(
                lambda i: Implies(s.is_replaced(i), Or(s.kind(i) == EMPTY, s.kind(i) == TOMBSTONE))
            ),
        ),
    ),
    "pending": lambda s: s.pending == s.next - 1,
    "index": lambda s: each(
        lambda i: And(
            Implies(s.kind(i) != EMPTY, And(i >= 1, i < s.next)),
            Implies(s.kind(i) == COMPACTED, And(i == F.range_last, s.compactor > WRITE)),
            Implies(s.kind(i) == TOMBSTONE, And(s.is_replaced(i), s.compactor > DELETE)),
        )
    ),
    "writers": lambda s: each(
        lambda w: And(
            Implies(s.phase(w) != IDLE, And(s.seen_pending(w) >= 0, s.seen_pending(w) < s.next)),
            Implies(s.phase(w) == ASSIGNED, And(s.own(w) >= 1, s.own(w) < s.next)),
        )
    ),
    # What a writer has found pending is in the index when it assigns the next offset.
    "ready": lambda s: each(
        lambda w: Implies(
            And(s.phase(w) == READY, s.seen_pending(w) != 0),
            s.is_readable(s.seen_pending(w), s.kind),
        )
    ),
    "compactor": lambda s: And(
        And(s.compactor >= START, s.compactor <= DONE, (s.cursor == 1) == (s.compactor != DONE)),
        Implies(s.compactor == WRITE, s.kind(F.range_last) == WAL),
        Implies(s.compactor > WRITE, s.kind(F.range_last) == COMPACTED),
    ),
    "range": lambda s: each(
        lambda i: And(
            Implies(And(s.compactor == WRITE, s.in_range(i)), s.kind(i) == WAL),
            Implies(And(s.compactor == DELETE, s.is_replaced(i)), s.kind(i) == WAL),
            Implies(And(s.compactor > DELETE, s.is_replaced(i)), s.kind(i) == s.DeletedEntry()),
        )
    ),
}
WRONG = {  # of specs/TwoStepAssign/TwoStepAssignBroken.tla
    ("Put", "PutAlways"): Wrong(lambda s, old: WAL, untrue=("range",)),
    ("DeletedEntry", "DeletedForGood"): Wrong(lambda s: EMPTY),
    ("MayAppend", "AppendsInTurn"): Wrong(lambda s: Or(s.compactor == START, s.compactor == DONE)),
    ("MayCompact", "CompactsInTurn"): Wrong(lambda s: each(lambda w: s.phase(w) == IDLE)),
    ("PendingAfter", "NothingPending"): Wrong(lambda s: IntVal(0)),
    ("CursorAfter", "CursorTooFar"): Wrong(lambda s: F.range_last + 2),
}


def structure(configuration: Configuration, state: Mapping[str, Term]) -> Structure:
    """A state that TLC has found."""
    index, writer = state["index"], state["writer"]
    kinds, phases = (
        ("EMPTY", "WAL", "COMPACTED", "TOMBSTONE"),
        ("idle", "read", "ready", "assigned"),
    )
    seen = lambda w, name: writer[w]["seen"][name] if writer[w]["phase"] != "idle" else UNSET
    entry = dict(enumerate(index, 1))
    constant = lambda name: Part(None, int(configuration.constants[name]))
    steps = ("idle", "write", "delete", "cursor", "done")
    parts = {
        **{"range_first": constant("RangeFirst"), "range_last": constant("RangeLast")},
        "next": Part(state["counter"], state["counter"]["next"]),
        "pending": Part(state["counter"], state["counter"]["pending"]),
        "kind": Part(index, lambda i: kinds.index(entry[i]["type"]) if i in entry else 0),
        "cursor": Part(state["cursor"], state["cursor"]),
        "compactor": Part(state["compactor"], steps.index(state["compactor"])),
        "phase": Part(writer, lambda w: phases.index(writer[w]["phase"])),
        "seen_next": Part(writer, lambda w: seen(w, "next")),
        "seen_pending": Part(writer, lambda w: seen(w, "pending")),
        "own": Part(writer, lambda w: writer[w]["own"]),
        "readable": Part(state["readable"], lambda i: i in state["readable"]),
    }
    return Structure({"Writer": tuple(writer), "Int": tuple(range(len(index) + 2))}, parts)


MODEL = Model(
    language=LOGIC,
    facts=FACTS,
    state=STATE,
    definitions=DEFINITIONS,
    initial=lambda s: And(
        And(s.next == 1, s.pending == 0, s.cursor == 1, s.compactor == START),
        each(lambda i: And(s.kind(i) == EMPTY, Not(s.readable(i)))),
        each(lambda w: And(s.phase(w) == IDLE, s.own(w) == 0)),
    ),
    actions=ACTIONS,
    laws=LAWS,
    axioms={"bounds": lambda s: And(F.range_first >= 1, F.range_first <= F.range_last)},
    wrong=WRONG,
    structure=structure,
    numbers=4,
)
