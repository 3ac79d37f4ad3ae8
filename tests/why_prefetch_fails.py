"""The story of docs/learn/why-prefetch-fails.md, from a real run: `python -m tests.why_prefetch_fails`.

A run on the virtual clock is the same every time, so what the document shows is what anybody gets.
"""

from itertools import count
from pathlib import Path
from typing import Any

import orjson

from bench.pages.lamport import select
from runs.history import Op
from runs.plots.lamport import Bold, lamport_svg
from tests.toy_log import VirtualRun, run_of
from workloads.kafka.shrink import smallest

DOCUMENT = Path(__file__).parents[1] / "docs" / "learn" / "why-prefetch-fails.md"
PICTURE = DOCUMENT.parents[1] / "images" / "why-prefetch-fails.svg"


def first_caught(anomaly: str) -> VirtualRun:
    """The run of `prefetch` with the lowest seed in which the checker finds `anomaly`."""
    for seed in count(1):
        run = run_of("prefetch", seed=str(seed), key_count=1, rate=300, time_limit_s=2)
        if anomaly in run.check()["bad-error-types"]:
            return run
    raise AssertionError("count never ends")


def told(history: list[Op]) -> list[str]:
    """A line for each completed operation: who, what, `message@offset`."""
    return [f"{op.process} {op.f} {_told(op.value)}" for op in history if op.type == "ok"]


def _told(value: Any) -> str:
    match value:
        case [["send", _, [offset, message]]]:
            return f"{message}@{offset}"
        case [["poll", polled]]:
            (pairs,) = polled.values()
            return ",".join(f"{message}@{offset}" for offset, message in pairs)
    raise AssertionError(value)


def picture(run: VirtualRun, history: list[Op]) -> str:
    """The messages behind a shrunk history, as a Lamport diagram."""
    sends = [op.value[0] for op in history if op.f == "send" and op.type == "ok"]
    wanted = {(key, message) for _, key, (_, message) in sends}
    events = [*map(orjson.loads, run.journal_file.content.splitlines())]
    chosen, labels = select(events, wanted)
    title = "prefetch: a message appears behind a reader (one key of a run)"
    behind = sends[-1][2][1]
    ids = [e["message"]["id"] for e in chosen if e["message"]["body"].get("msg") == behind]
    bold = {number: label for number, label in labels.items() if label or number == ids[0]}
    return lamport_svg(chosen, title, Bold("a message that appears behind, and the polls", bold))


def main() -> None:
    """Draw the picture of the document."""
    run = first_caught("poll-skip")
    PICTURE.write_text(picture(run, smallest(run.history, ["poll-skip"])), encoding="utf-8")


if __name__ == "__main__":
    main()
