"""BookKeeper's recovery, told step by step."""

from collections.abc import Iterator

from specs.second.bookkeeper import State
from specs.stories.diagram import Diagram, all_of, name_of


def tell(step: str, before: State, after: State, diagram: Diagram) -> str:
    """One step of BookKeeper's recovery."""
    entry = after.recovery.entry
    match step:
        case "AddEntry":
            new = sorted(after.adds - before.adds)
            for add in new:
                diagram.send(
                    "owner", name_of("bookie", add.bookie), add, type="add", entry=add.entry
                )
            return f"The owner sends entry {after.sent} to {_bookies(a.bookie for a in new)}."
        case "Store":
            (add,) = before.adds - after.adds
            diagram.arrive(add)
            diagram.tell(name_of("bookie", add.bookie), "owner", type="stored", entry=add.entry)
            return f"{name_of('Bookie', add.bookie)} stores entry {add.entry} and acknowledges it."
        case "Confirm":
            diagram.tell("owner", "c1", type="confirmed", entry=after.confirmed[-1])
            return f"The owner confirms entry {after.confirmed[-1]} to its client."
        case "StartRecovery":
            diagram.tell("recoverer", "metadata", type="cas", status="IN_RECOVERY")
            to = _request(after, diagram, "fence")
            return f"A recoverer marks the ledger and asks {to} to fence it."
        case "Fence" | "Read" | "Copy":
            return _answer(before, after, diagram)
        case "StartReading" | "ReadNext":
            return f"The recoverer reads entry {entry} from {_request(after, diagram, 'read')}."
    return _end_of_recovery(step, after, diagram)


def _end_of_recovery(step: str, after: State, diagram: Diagram) -> str:
    entry = after.recovery.entry
    if step == "WriteBack":
        to = _request(after, diagram, "write back")
        return f"The recoverer writes entry {entry} back to {to}."
    if step == "FindEnd":
        return f"So many bookies lack entry {entry} that the recoverer takes it for unwritten."
    diagram.tell("recoverer", "metadata", type="cas", status="CLOSED", last=after.last)
    return f"The recoverer closes the ledger with last entry {after.last}."


def _bookies(numbers: Iterator[int]) -> str:
    return all_of([name_of("bookie", number) for number in numbers])


def _request(after: State, diagram: Diagram, kind: str) -> str:
    recovery = after.recovery
    for number in sorted(recovery.waiting):
        key = (recovery.phase, recovery.entry, number)
        body = {"entry": recovery.entry} if recovery.entry else {}
        diagram.send("recoverer", name_of("bookie", number), key, type=kind, **body)
    return _bookies(iter(sorted(recovery.waiting)))


def _answer(before: State, after: State, diagram: Diagram) -> str:
    recovery = after.recovery
    (number,) = before.recovery.waiting - recovery.waiting
    ((_, answer),) = recovery.answers - before.recovery.answers
    bookie = name_of("bookie", number)
    diagram.arrive((recovery.phase, recovery.entry, number))
    if recovery.phase == "fencing":
        diagram.tell(bookie, "recoverer", type="fenced", lac=answer)
        return f"{name_of('Bookie', number)} is fenced; the last add confirmed that it knows is {answer}."
    diagram.tell(bookie, "recoverer", type=str(answer), entry=recovery.entry)
    said = {"found": "has", "missing": "does not have", "added": "stores"}[str(answer)]
    return f"{name_of('Bookie', number)} {said} entry {recovery.entry}."
