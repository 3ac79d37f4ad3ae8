"""All nodes of a run as processes: started together, and stopped so that none is left behind."""

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.hosts import Host, OnFailure, OnLine
from bench.hosts.process import ProcessHost
from bench.loop import RealLoop

_TERM_GRACE_S = 1.0
_POLL_S = 0.005
_TAIL_NS = 100_000_000


class ProcessHosts:
    """The nodes of a run. `echo_stderr` copies what nodes log to the bench's stderr
    (`--log-stderr`).
    """

    def __init__(
        self,
        loop: RealLoop,
        nodes: Sequence[str],
        *,
        command: Sequence[str],
        log_dir: Path,
        on_line: OnLine,
        on_failure: OnFailure,
        echo_stderr: bool = False,
    ) -> None:
        self._loop = loop
        self._echo = echo_stderr
        self._hosts = [
            ProcessHost(
                node,
                loop,
                command=command,
                log=log_dir / f"{node}.log",
                on_line=on_line,
                on_failure=on_failure,
            )
            for node in nodes
        ]
        self._echoed: dict[str, int] = {}

    def start(self) -> list[Host]:
        for host in self._hosts:
            host.start()
        if self._echo:
            self._tail()
        return list(self._hosts)

    def pids(self) -> dict[str, int]:
        """The process of each node that was started."""
        return {host.name: host.process.pid for host in self._hosts if host.started}

    def stop(self) -> None:
        """End of stdin and SIGTERM, a second of grace, SIGKILL; to each whole process group."""
        for host in self._hosts:
            host.close()
            host.signal(signal.SIGTERM)
            host.signal(signal.SIGCONT)  # a paused one could not end
        started = [host for host in self._hosts if host.started]
        deadline = time.monotonic() + _TERM_GRACE_S
        while time.monotonic() < deadline and any(h.process.poll() is None for h in started):
            time.sleep(_POLL_S)
        for host in started:
            host.signal(signal.SIGKILL)  # also for what a node that has exited left in its group
            host.process.wait()
        if self._echo:
            self._copy_logs()

    def _tail(self) -> None:
        self._copy_logs()
        self._loop.call_at(self._loop.now_ns() + _TAIL_NS, self._tail)

    def _copy_logs(self) -> None:
        for host in self._hosts:
            with host.log.open("rb") as file:
                file.seek(self._echoed.get(host.name, 0))
                fresh = file.read()
            if fresh:
                self._echoed[host.name] = self._echoed.get(host.name, 0) + len(fresh)
                for line in fresh.decode(errors="replace").splitlines():
                    sys.stderr.write(f"{host.name}: {line}\n")
