"""`python -m specs.stories`: counterexamples as numbered events and Lamport diagrams, for docs/models.

The second checker finds the shortest way to a broken law. This module says each step of it in words
and as messages. A page keeps its events between two comments; the pictures are in docs/images.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from plots.lamport import lamport_svg
from specs.manifest import load
from specs.second.bookkeeper import State as Ledger
from specs.second.configurations import second_model
from specs.second.explorer import Model, explore
from specs.second.leaderless_log import State as Published
from specs.second.task_claiming import State as Claims
from specs.second.two_step_assign import State as Index
from specs.second.unclean_election import State as Partition

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- events -->", "<!-- end of events -->"
MOST_STATES = 1_000_000
S = TypeVar("S", bound=Hashable)
Event = dict[str, Any]


@dataclass
class Diagram:
    """Collects messages as events of a network journal, one millisecond apart."""

    events: list[Event] = field(default_factory=list)
    _under_way: dict[Hashable, Event] = field(default_factory=dict)
    _count: int = 0

    def send(self, src: str, dest: str, key: Hashable = None, **body: object) -> None:
        """A message leaves; it arrives when `arrive` is called with its key, or never."""
        self._count += 1
        message = {"id": self._count, "src": src, "dest": dest, "body": body}
        self._under_way[key] = message
        self._add("send", message)

    def arrive(self, key: Hashable) -> None:
        """The message with this key arrives."""
        self._add("recv", self._under_way.pop(key))

    def tell(self, src: str, dest: str, **body: object) -> None:
        """A message leaves and arrives at once."""
        self.send(src, dest, None, **body)
        self.arrive(None)

    def _add(self, kind: str, message: Event) -> None:
        self.events.append({"type": kind, "time": len(self.events) * 1_000_000, "message": message})


Teller = Callable[[str, Any, Any, Diagram], str]  # step, before, after, diagram -> a sentence


@dataclass(frozen=True)
class Story:
    """A broken configuration, the page that tells it, and how its steps are told."""

    configuration: str
    page: str
    title: str
    tell: Teller

    @property
    def picture(self) -> Path:
        """Where its diagram is."""
        return DOCS / "images" / f"model-{self.page}.svg"


def _name(kind: str, number: int) -> str:
    return f"{kind}-{'abcdef'[number]}"


def _all(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def tell_ledger(step: str, before: Ledger, after: Ledger, diagram: Diagram) -> str:
    """One step of BookKeeper's recovery."""
    entry = after.recovery.entry
    match step:
        case "AddEntry":
            new = sorted(after.adds - before.adds)
            for add in new:
                diagram.send("owner", _name("bookie", add.bookie), add, type="add", entry=add.entry)
            return f"The owner sends entry {after.sent} to {_bookies(a.bookie for a in new)}."
        case "Store":
            (add,) = before.adds - after.adds
            diagram.arrive(add)
            diagram.tell(_name("bookie", add.bookie), "owner", type="stored", entry=add.entry)
            return f"{_name('Bookie', add.bookie)} stores entry {add.entry} and acknowledges it."
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


def _end_of_recovery(step: str, after: Ledger, diagram: Diagram) -> str:
    entry = after.recovery.entry
    if step == "WriteBack":
        to = _request(after, diagram, "write back")
        return f"The recoverer writes entry {entry} back to {to}."
    if step == "FindEnd":
        return f"So many bookies lack entry {entry} that the recoverer takes it for unwritten."
    diagram.tell("recoverer", "metadata", type="cas", status="CLOSED", last=after.last)
    return f"The recoverer closes the ledger with last entry {after.last}."


def _bookies(numbers: Iterator[int]) -> str:
    return _all([_name("bookie", number) for number in numbers])


def _request(after: Ledger, diagram: Diagram, kind: str) -> str:
    recovery = after.recovery
    for number in sorted(recovery.waiting):
        key = (recovery.phase, recovery.entry, number)
        body = {"entry": recovery.entry} if recovery.entry else {}
        diagram.send("recoverer", _name("bookie", number), key, type=kind, **body)
    return _bookies(iter(sorted(recovery.waiting)))


def _answer(before: Ledger, after: Ledger, diagram: Diagram) -> str:
    recovery = after.recovery
    (number,) = before.recovery.waiting - recovery.waiting
    ((_, answer),) = recovery.answers - before.recovery.answers
    bookie = _name("bookie", number)
    diagram.arrive((recovery.phase, recovery.entry, number))
    if recovery.phase == "fencing":
        diagram.tell(bookie, "recoverer", type="fenced", lac=answer)
        return f"{_name('Bookie', number)} is fenced; the last add confirmed that it knows is {answer}."
    diagram.tell(bookie, "recoverer", type=str(answer), entry=recovery.entry)
    said = {"found": "has", "missing": "does not have", "added": "stores"}[str(answer)]
    return f"{_name('Bookie', number)} {said} entry {recovery.entry}."


def tell_partition(step: str, before: Partition, after: Partition, diagram: Diagram) -> str:
    """One step of an election of last resort."""
    leader = _name("replica", after.leader)
    changed = [n for n, r in enumerate(after.replicas) if r != before.replicas[n]]
    who = _name("replica", changed[0]) if changed else leader
    log = after.replicas[changed[0]].log if changed else ()
    match step:
        case "Produce":
            diagram.tell("c1", who, type="produce", msg=after.sent)
            return f"{who} appends message {after.sent} in epoch {log[-1][0]}."
        case "LearnMetadata":
            diagram.tell("metadata", who, type="metadata", leader=leader, epoch=after.epoch)
            return f"{who} learns that {leader} leads epoch {after.epoch}."
        case "Truncate":
            diagram.tell(leader, who, type="truncate", length=len(log))
            return f"{who} drops what {leader} does not have; {len(log)} entries remain."
        case "Fetch":
            diagram.tell(leader, who, type="fetch", msg=log[-1][1])
            return f"{who} fetches message {log[-1][1]} from {leader}."
        case "Commit":
            messages = [message for _, message in after.committed[len(before.committed) :]]
            for message in messages:
                diagram.tell(leader, "c1", type="produce_ok", msg=message)
            return f"{leader} commits message {_all([str(m) for m in messages])}: the in-sync set has it."
        case "Shrink" | "Expand":
            diagram.tell(leader, "metadata", type=step.lower(), replica=who)
            if step == "Expand":
                return f"{leader} takes {who} into the in-sync set."
            return f"{leader} takes {who}, which lags, out of the in-sync set."
    return _change_of_leader(step, after.epoch, leader, who)


def _change_of_leader(step: str, epoch: int, leader: str, who: str) -> str:
    sentences = {
        "MoveLeader": f"The balancer makes {leader} leader of epoch {epoch}.",
        "ElectClean": f"The controller elects {leader} from the in-sync set for epoch {epoch}.",
        "ElectUnclean": f"Nobody in the in-sync set runs: the controller elects {leader} for epoch {epoch}.",
        "Crash": f"{who} dies.",
        "Restart": f"{who} starts again.",
    }
    return sentences[step]


def tell_index(step: str, before: Index, after: Index, diagram: Diagram) -> str:
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


def _materialise(step: str, before: Index, after: Index, diagram: Diagram, name: str) -> str:
    seen = before.writers[0].seen
    pending = seen[1] if step == "MaterialisePending" and seen else before.counter[1]
    if not pending:
        return "Nothing is pending, so there is nothing to put into the index."
    diagram.tell(name, "index", type="put", offset=pending)
    was, now = before.entries[pending - 1], after.entries[pending - 1]
    over = "" if was == "empty" else f", over the {was} entry there"
    return f"The {name} puts the pending offset {pending} into the index{over} (now {now})."


def tell_claims(step: str, before: Claims, after: Claims, diagram: Diagram) -> str:
    """One step of claiming a task with a lock of a session."""
    changed = [n for n, each in enumerate(after.workers) if each != before.workers[n]]
    freed = [
        task.owner for task in before.tasks if task not in after.tasks and task.owner is not None
    ]
    number = (changed or freed)[0]
    who, worker = _name("worker", number), before.workers[number]
    task = f"task {1 + (worker.task or after.workers[number].task or 0)}"
    match step:
        case "ScanTasks":
            diagram.tell(who, "store", type="scan", found=task)
            return f"{who} scans the tasks and finds that {task} is open."
        case "TryLockSuccess":
            diagram.tell(who, "store", type="create", lock=task)
            return f"{who} creates the lock of {task} in its session and begins to execute it."
        case "TryLockFail":
            diagram.tell(who, "store", type="create", lock=task)
            return f"{who} finds that {task} is locked or done."
        case "SessionExpiry":
            diagram.tell("store", "store", type="expire", session=who)
            return f"{who} is slow, and its session ends: the store drops the lock of {task}."
        case "ExecuteSuccess":
            diagram.tell(who, "store", type="commit", task=task)
            times = after.tasks[worker.task or 0].effects
            return f"{who} executes {task}: its effect has taken place {'once' if times == 1 else 'twice'}."
    return _other_claim(step, who, task, diagram)


def _other_claim(step: str, who: str, task: str, diagram: Diagram) -> str:
    if step in ("UnlockTask", "ExecuteFailure"):
        diagram.tell(who, "store", type="unlock" if step == "UnlockTask" else "fail", task=task)
    sentences = {
        "ExecuteFailure": f"{who} fails to execute {task}, and counts the failure.",
        "UnlockTask": f"{who} releases its lock of {task}, if it still has it.",
        "WorkerCrash": f"{who} dies.",
        "WorkerRecover": f"{who} starts again with a new session.",
    }
    return sentences[step]


def tell_published(step: str, before: Published, after: Published, diagram: Diagram) -> str:
    """One step of the Leaderless Log Protocol as published."""
    changed = [n for n, each in enumerate(after.writers) if each != before.writers[n]]
    who = _name("writer", changed[0]) if changed else "log-compactor"
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


def _compaction(step: str, after: Published, diagram: Diagram) -> str:
    said = {
        "CompactStart": "The compactor finds its range covered by entries, and begins.",
        "CompactWriteCompactedIndex": "It writes one compacted entry at the end of its range.",
        "CompactDeleteOldEntries": "It deletes the other entries of its range.",
        "CompactUpdateCursor": f"It moves the cursor to {after.cursor}, behind its range.",
    }
    if step != "CompactStart":
        diagram.tell("log-compactor", "index", type=step.removeprefix("Compact"))
    return said[step]


STORIES = (
    Story(
        "BookKeeper/reads-do-not-fence", "bookkeeper", "An entry is lost in recovery", tell_ledger
    ),
    Story(
        "UncleanElection/latest-offset",
        "unclean-election",
        "The replica with the latest offset lacks a committed message",
        tell_partition,
    ),
    Story(
        "TwoStepAssign/published-in-turn",
        "two-step-assign",
        "A stale pending entry overwrites a compacted one",
        tell_index,
    ),
    Story(
        "TaskClaiming/session-expires-early",
        "task-claiming",
        "A slow worker loses its session and goes on",
        tell_claims,
    ),
    Story(
        "LeaderlessLog/published-overlap",
        "leaderless-log",
        "A range ends inside a batch, and two entries cover one message",
        tell_published,
    ),
)


def steps_of(story: Story) -> list[tuple[str, Any]]:
    """The shortest way to the broken law, with the same names from the first state to the last."""
    configuration = next(c for c in load().configurations if c.title == story.configuration)
    model = second_model(configuration)
    found = explore(model, configuration.invariants, MOST_STATES)
    return _with_one_naming(model, found.path)


def _with_one_naming(model: Model[S], path: tuple[tuple[str, S], ...]) -> list[tuple[str, S]]:
    """A path of representatives as a path of states: a representative may have other names."""
    _, first = path[0]
    state = next(s for s in model.initial() if model.representative(s) == first)
    told = [("Init", state)]
    for step, representative in path[1:]:
        state = next(
            after
            for name, after in model.steps(state)
            if name == step and model.representative(after) == representative
        )
        told.append((step, state))
    return told


def write(story: Story) -> tuple[list[str], str]:
    """The numbered events of a story and its diagram, an SVG document."""
    told = steps_of(story)
    diagram = Diagram()
    sentences = [
        story.tell(step, before, after, diagram) for (_, before), (step, after) in pairwise(told)
    ]
    lines = [f"{number}. {s[0].upper()}{s[1:]}" for number, s in enumerate(sentences, 1)]
    return lines, lamport_svg(diagram.events, story.title)


def main() -> None:
    """Write the events into the pages and the pictures beside them."""
    for story in STORIES:
        lines, svg = write(story)
        page = DOCS / "models" / f"{story.page}.md"
        text = page.read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        page.write_text(before + "\n".join([BEGIN, *lines, END]) + after)
        story.picture.write_text(svg)


if __name__ == "__main__":
    main()
