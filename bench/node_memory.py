"""The memory of nodes, which is limited, so that one that eats all of it does not take the machine with it.

It is the resident size of a node's process group, the processes that it started included. Given a limit, no
node may use more. Without one, all nodes together may use three quarters of what was free when they started; a
share for each would be too little for some nodes, while others need almost none. Linux only: elsewhere nothing
is known of a node's memory, and nothing is limited.

A limit of the kernel would be sharper, but `RLIMIT_AS` counts addresses, of which a Java or Go node reserves
many more than it uses, and a cgroup needs rights that a bench rarely has. A look costs 25 µs a node, ten times
a second, and once a second a walk over all processes.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.system import GROUP, PROC, RESIDENT, processes, stats_of

MIB = 2**20
LOOK_NS = 100_000_000
WHOLE_GROUPS_EVERY = 10  # looks; those between see only the process that the bench started
_SHARE = 0.75
_CGROUP = Path("/sys/fs/cgroup")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Of one node (`each_bytes`), or of all of them together."""

    each_bytes: int | None = None
    together_bytes: int | None = None

    def broken_by(self, used_bytes: Mapping[str, int]) -> tuple[str, str] | None:
        """The node to end, and a sentence that says why; None while all is well."""
        if not used_bytes:
            return None
        node, most = max(used_bytes.items(), key=lambda each: each[1])
        together = sum(used_bytes.values())
        if self.each_bytes is not None and most > self.each_bytes:
            limit = f"A node may use {self.each_bytes // MIB} MiB (--node-memory-max)."
        elif self.together_bytes is not None and together > self.together_bytes:
            limit = (
                f"All nodes together used {together // MIB} MiB, and they may use"
                f" {self.together_bytes // MIB} MiB, three quarters of what was free. To give each"
                " node a limit of its own, use --node-memory-max."
            )
        else:
            return None
        return node, f"Node {node} used {most // MIB} MiB of memory and was killed. {limit}"


UNLIMITED = MemoryLimit()


def limit_of(each_mib: int | None) -> MemoryLimit:
    """The limit that was asked for, or that of this machine."""
    if each_mib is not None:
        return MemoryLimit(each_bytes=each_mib * MIB)
    free = free_bytes()
    return MemoryLimit(together_bytes=None if free is None else int(free * _SHARE))


def free_bytes() -> int | None:
    """Memory that can be used without swapping, by this machine or by this container; None if unknown."""
    known: list[int] = []
    with suppress(OSError, KeyError):
        sizes = dict(line.split(":", 1) for line in (PROC / "meminfo").read_text().splitlines())
        known.append(int(sizes["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError):
        allowed, used = ((_CGROUP / f"memory.{name}").read_text() for name in ("max", "current"))
        if allowed.strip() != "max":
            known.append(int(allowed) - int(used))
    return min(known, default=None)


def resident_bytes(pids: Mapping[str, int], *, whole_groups: bool) -> dict[str, int]:
    """The memory of nodes, each given by the process that leads its group; empty on other systems."""
    if not sys.platform.startswith("linux"):
        return {}
    names = {group: name for name, group in pids.items()}
    used = dict.fromkeys(pids, 0)
    for fields in stats_of(processes() if whole_groups else pids.values()):
        if name := names.get(int(fields[GROUP])):
            used[name] += int(fields[RESIDENT]) * _PAGE_BYTES
    return used
