"""Collects the history of a run, and streams it to `history.jsonl` so that an abort loses nothing."""

from typing import Any

from bench.loop import Loop
from runs.history import Op, OpType, Process, json_line
from runs.writing import Lines


class Recorder:
    """Numbers and times operations. Time counts from `start`, when the main phase begins."""

    def __init__(self, loop: Loop, file: Lines) -> None:
        self._loop = loop
        self._file = file
        self._lines: list[bytes] = []
        self._origin_ns = 0
        self.ops: list[Op] = []

    def start(self) -> None:
        """Let the clock of the history begin now."""
        self._origin_ns = self._loop.now_ns()

    @property
    def origin_ns(self) -> int:
        """Where the history's clock begins on the loop's clock (which the journal uses)."""
        return self._origin_ns

    def now_ns(self) -> int:
        return self._loop.now_ns() - self._origin_ns

    def record(
        self,
        type: OpType,  # noqa: A002 - the field is called so in every history
        process: Process,
        f: str,
        value: Any,
        extra: dict[str, Any] | None = None,
    ) -> Op:
        """Append one operation to the history, with the present time."""
        op = Op(len(self.ops), self.now_ns(), type, process, f, value, extra or {})
        self.ops.append(op)
        self._lines.append(json_line(op))
        return op

    def flush(self) -> None:
        """Write what was recorded since the last flush (`OSError` when the disk is full)."""
        lines, self._lines = self._lines, []
        if lines:
            self._file.write(b"\n".join(lines) + b"\n")
        self._file.flush()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._file.close()
