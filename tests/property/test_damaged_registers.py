"""Whatever of a store's answers is damaged or lost, an outcome of the registers is never wrong."""

from typing import Any, Literal

import anyio
import orjson
from hypothesis import given
from hypothesis import strategies as st

from leaderless.core.messages import Cas, Get, Mismatch, Missing, Ok, Outcome, Put, StoreOp, Unknown
from leaderless.store.etags import version_of
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, OutcomeUnknown, Version
from leaderless.store.registers import Registers

Fate = Literal["ok", "half", "empty", "garbage", "no ETag", "call lost", "answer lost"]
FATES: tuple[Fate, ...] = (
    "ok", "ok", "ok", "half", "empty", "garbage", "no ETag", "call lost", "answer lost",
)  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),  # which of two processes
        st.sampled_from(["get", "put", "create", "set", "set"]),
        st.lists(st.sampled_from(FATES), max_size=2),  # of its calls
    ),
    max_size=40,
)


class Troubled(MemoryStore):
    """The next calls meet `fates`."""

    fates: list[Fate]

    async def read(self, key: str) -> Found | None:
        fate = self._next()
        found = await super().read(key)
        if fate in ("call lost", "answer lost"):
            raise OutcomeUnknown(fate)
        if found is None:
            return None
        if fate == "no ETag":
            version_of({})
        text = found.value
        damaged = {"half": text[: len(text) // 2], "empty": b"", "garbage": b"\xff" * len(text)}
        return found._replace(value=damaged.get(fate, text))

    async def write(self, key: str, value: bytes) -> Version:
        fate = self._next()
        if fate == "call lost":
            raise OutcomeUnknown(fate)
        version = self._keep(key, value)
        if fate == "answer lost":
            raise OutcomeUnknown(fate)
        return version_of({"e_tag": None if fate == "no ETag" else version})

    def _next(self) -> Fate:
        return self.fates.pop(0) if self.fates else "ok"

    def truth(self) -> Any:
        kept = self._objects.get("a")
        return orjson.loads(kept[0].value) if kept else None


class Process:
    """One process: what it knows of the register, and what it asks next."""

    def __init__(self, store: Troubled) -> None:
        self.registers = Registers(store)
        self.knows: Any = None

    def op(self, kind: str, new: Any) -> StoreOp:
        match kind:
            case "get":
                return Get("a")
            case "put":
                return Put("a", new)
            case "create":
                return Cas("a", None, new, create=True)
        return Cas("a", self.knows, new)


def require_true(op: StoreOp, outcome: Outcome, before: Any, after: Any) -> None:
    """An outcome is what happened, or says that it does not know."""
    match op, outcome:
        case (_, Unknown()):
            wanted = None if isinstance(op, Get) else getattr(op, "new", getattr(op, "value", None))
            assert after in (before, wanted)
        case Get(), Ok(value):
            assert value == before == after
        case Put(_, new), Ok():
            assert after == new
        case Cas(_, old, new), Ok():
            assert (before, after) == (old, new)
        case Cas(_, old), Mismatch():
            assert before == after != old
        case _, Missing():
            assert before is after is None
        case _:
            raise AssertionError(f"{op}: {outcome}")


@given(STEPS)
def test_an_outcome_is_never_wrong(steps: list[tuple[int, str, list[Fate]]]) -> None:
    async def play() -> None:
        store = Troubled()
        processes = [Process(store), Process(store)]
        for number, (who, kind, fates) in enumerate(steps, 1):
            process = processes[who]
            before = store.truth()
            op = process.op(kind, {"number": number})
            store.fates = [*fates]
            outcome = await process.registers.carry_out(op)
            store.fates = []
            require_true(op, outcome, before, store.truth())
            if isinstance(op, Get) and isinstance(outcome, Ok):
                process.knows = outcome.value
            elif isinstance(outcome, Ok):
                process.knows = {"number": number}

    anyio.run(play)
