"""Runs: what sealed segments of all keys become when they are compacted, and the index of them.

    compacted          {epoch, cursor, runs: [{register, first, last, base, end}, ...]}
    run/FIRST-LAST     {base, end, keys: {key: [first_offset, [msg, ...]]}, commits,
                        writers: {writer: [seq, {key: first_offset}]}}

A run holds slots base .. end - 1, from segments FIRST .. LAST; it never changes. Segments below `cursor` are
deleted. `writers` tells of each writer's newest batch in the run where it is: a node that slept until its
batch was compacted still learns its offsets. `epoch` is that of the newest worker (`compaction`).
"""

from typing import Any

COMPACTED = "compacted"

Index = dict[str, Any]
Run = dict[str, Any]
EMPTY_INDEX: Index = {"epoch": 0, "cursor": 0, "runs": []}


def merge(segments: list[Any]) -> Run:
    """The run of consecutive segments: a function of them alone, so that all who make it make the same."""
    keys: dict[str, list[Any]] = {}
    commits: dict[str, int] = {}
    writers: dict[str, list[Any]] = {}
    for segment in segments:
        for writer, seq, appends, committed in segment["entries"]:
            writers[writer] = [seq, {key: first for key, (first, _) in appends.items()}]
            for key, (first, msgs) in appends.items():
                keys.setdefault(key, [first, []])[1].extend(msgs)
            for key, offset in committed.items():
                commits[key] = max(offset, commits.get(key, offset))
    end = segments[-1]["base"] + len(segments[-1]["entries"])
    return {
        "base": segments[0]["base"],
        "end": end,
        "keys": keys,
        "commits": commits,
        "writers": writers,
    }
