"""An append in two steps, told step by step."""

from specs.second.two_step_assign import State
from specs.stories.diagram import Diagram


def tell(step: str, before: State, after: State, diagram: Diagram) -> str:
    """One step of an append in two steps."""
    following, pending = after.counter
    name = "reader" if step == "Help" else "writer"
    match step:
        case "ReadCounter":
            diagram.tell(name, "offset-counter", type="read")
            return (
                f"The writer reads the counter: next {following}, pending {pending or 'nothing'}."
            )
        case "CasCounter":
            diagram.tell(name, "offset-counter", type="cas", next=following, pending=pending)
            return f"It assigns offset {pending} and leaves it in the counter as pending."
        case "MaterialisePending" | "MaterialiseOwn" | "Help":
            return _materialise(step, before, after, diagram, name)
        case "WriterCrash":
            return "The writer dies."
        case "CompactStart":
            return "A compactor finds its range complete."
        case "CompactWrite":
            diagram.tell("log-compactor", "index", type="put", entry="compacted")
            return "It puts one compacted entry at the end of its range."
        case "CompactDelete":
            diagram.tell("log-compactor", "index", type="delete", entry="the rest of the range")
            return "It deletes the other entries of its range."
        case "CompactCursor":
            return "It moves the cursor behind its range."
    raise AssertionError(step)


def _materialise(step: str, before: State, after: State, diagram: Diagram, name: str) -> str:
    seen = before.writers[0].seen
    pending = seen[1] if step == "MaterialisePending" and seen else before.counter[1]
    if not pending:
        return "Nothing is pending, so there is nothing to put into the index."
    diagram.tell(name, "index", type="put", offset=pending)
    was, now = before.entries[pending - 1], after.entries[pending - 1]
    over = "" if was == "empty" else f", over the {was} entry there"
    return f"The {name} puts the pending offset {pending} into the index{over} (now {now})."
