"""An election of last resort, told step by step."""

from specs.second.unclean_election import State
from specs.stories.diagram import Diagram, all_of, name_of


def tell(step: str, before: State, after: State, diagram: Diagram) -> str:
    """One step of an election of last resort."""
    leader = name_of("replica", after.leader)
    changed = [n for n, r in enumerate(after.replicas) if r != before.replicas[n]]
    who = name_of("replica", changed[0]) if changed else leader
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
            return f"{leader} commits message {all_of([str(m) for m in messages])}: the in-sync set has it."
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
