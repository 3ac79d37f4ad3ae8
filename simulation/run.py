"""The bench's own run on a virtual clock, its nodes objects of this process.

A run is the same every time, to the byte, and takes as long as its callbacks do.
"""

import hashlib
from typing import Any

import workloads
from bench.cluster import OnFailure, OnLine
from bench.loop import VirtualLoop
from bench.options import TestOptions
from bench.run import BenchRun, Watcher
from runs.history import Op
from runs.writing import Lines
from simulation.hosts import NS, MakeNode, SimulatedHost, SimulatedHosts
from workloads.interface import Setting, Workload

THINK_NS = 100_000  # what a node takes for a line, if nothing else is said


class DigestFile:
    """A file for writing only. `copy` gets the same bytes; `keep` holds them in memory."""

    def __init__(self, copy: Lines | None = None, keep: bool = False) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._copy = copy
        self._kept: list[bytes] | None = [] if keep else None

    def write(self, data: bytes) -> None:
        self._hash.update(data)
        if self._copy:
            self._copy.write(data)
        if self._kept is not None:
            self._kept.append(data)

    def close(self) -> None:
        if self._copy:
            self._copy.close()

    def digest(self) -> bytes:
        return self._hash.digest()

    @property
    def content(self) -> bytes:
        """Everything so far, with `keep`; otherwise nothing."""
        return b"".join(self._kept or ())


class SimulatedRun(BenchRun):
    """A run of the bench; `make` gives its nodes.

    `keep`: history and journal stay in memory (`DigestFile.content`); `history`, `journal`: where they go, too.
    """

    def __init__(
        self,
        options: TestOptions,
        make: MakeNode,
        *,
        keep: bool = False,
        history: Lines | None = None,
        journal: Lines | None = None,
    ) -> None:
        self.loop = VirtualLoop()
        self.history_file, self.journal_file = DigestFile(history, keep), DigestFile(journal, keep)
        self._make = make
        super().__init__(
            options,
            self._build_workload,
            self.loop,
            self._make_hosts,
            history_file=self.history_file,
            journal_file=self.journal_file,
            watcher=Watcher(),
        )

    @property
    def digest(self) -> str:
        """Of everything that happened: the journal, then the history."""
        return (self.journal_file.digest() + self.history_file.digest()).hex()

    @property
    def virtual_s(self) -> float:
        """How long the run has taken on its own clock."""
        return self.loop.now_ns() / NS

    @property
    def judged(self) -> list[Op]:
        """What the checker judges."""
        return self.recorder.ops

    def check(self) -> dict[Any, Any]:
        """What the workload's checker says of the run."""
        return self.workload.judge.check(self.judged, self.options.as_dict())

    def _build_workload(self, setting: Setting) -> Workload:
        return workloads.build(self.options.workload, setting)

    def _make_hosts(self, on_line: OnLine, _on_failure: OnFailure) -> SimulatedHosts:
        hosts = SimulatedHosts(self.options.nodes, lambda name: self._new_host(name, on_line))
        self.hosts = hosts.by_name
        return hosts

    def _new_host(self, name: str, on_line: OnLine) -> SimulatedHost:
        """A host; a subclass may take notice of what happens to it."""
        return SimulatedHost(name, self.loop, on_line, self._make, lambda: THINK_NS)
