"""Claiming a task with a lock of a session, told step by step."""

from specs.second.task_claiming import State
from specs.stories.diagram import Diagram, name_of


def tell(step: str, before: State, after: State, diagram: Diagram) -> str:
    """One step of claiming a task with a lock of a session."""
    changed = [n for n, each in enumerate(after.workers) if each != before.workers[n]]
    freed = [
        task.owner for task in before.tasks if task not in after.tasks and task.owner is not None
    ]
    number = (changed or freed)[0]
    who, worker = name_of("worker", number), before.workers[number]
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
