"""The Leaderless Log Protocol as published, told step by step."""

from specs.second.leaderless_log import State
from specs.stories.diagram import Diagram, name_of


def tell(step: str, before: State, after: State, diagram: Diagram) -> str:
    """One step of the Leaderless Log Protocol as published."""
    changed = [n for n, each in enumerate(after.writers) if each != before.writers[n]]
    who = name_of("writer", changed[0]) if changed else "log-compactor"
    writer = after.writers[changed[0]] if changed else None
    match step:
        case "StartAppend" if writer:
            diagram.tell(who, "wal", type="put", messages=writer.batch)
            return f"{who} begins to write a batch of {writer.batch}."
        case "WALWriteSuccess":
            diagram.tell("wal", who, type="ok")
            return f"The batch of {who} is in the write-ahead log."
        case "AssignOffset" if writer:
            first = writer.offset - writer.batch + 1
            diagram.tell(who, "index", type="assign", first=first, last=writer.offset)
            at = f"{who} gets offsets {first} to {writer.offset}"
            return f"{at}; the entry of the index at {writer.offset} covers them."
        case "AppendComplete":
            return f"{who} is done with its batch."
    return _compaction(step, after, diagram)


def _compaction(step: str, after: State, diagram: Diagram) -> str:
    said = {
        "CompactStart": "The compactor finds its range covered by entries, and begins.",
        "CompactWriteCompactedIndex": "It writes one compacted entry at the end of its range.",
        "CompactDeleteOldEntries": "It deletes the other entries of its range.",
        "CompactUpdateCursor": f"It moves the cursor to {after.cursor}, behind its range.",
    }
    if step != "CompactStart":
        diagram.tell("log-compactor", "index", type=step.removeprefix("Compact"))
    return said[step]
