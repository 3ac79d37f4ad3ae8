"""Executing notebooks on a lake, with a readable end when a cell fails.

All of one command share a process, and with it a Spark session: to start one takes as long as a notebook.
Each begins with no names but its own.
"""

import asyncio
import base64
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from analysis.errors import AnalysisError, Interrupted
from analysis.notebooks.tables import LAKE, MASTER
from runs.writing import write_whole

_notebooks: Any = nbformat  # its functions have no types
FOLDER = Path(__file__).parent
_ROOT = FOLDER.parents[1]  # the project is not installed: notebooks import it from here
_SHOWN_LINES = 12

Progress = Callable[[int, int], None]  # the code cell that begins, from 1; how many there are


def named(names: Sequence[str]) -> list[Path]:
    """The files of notebooks by name, with or without `.ipynb`; all of them for no names.

    Raises:
        AnalysisError: there is no such notebook.
    """
    there = {file.stem: file for file in sorted(FOLDER.glob("*.ipynb"))}
    asked = [name.removesuffix(".ipynb") for name in names] or list(there)
    if unknown := [name for name in asked if name not in there]:
        raise AnalysisError(f"there is no notebook {unknown[0]}; there are: {', '.join(there)}")
    return [there[name] for name in asked]


@contextmanager
def kernel(lake: str, master: str) -> Iterator[AsyncKernelManager]:
    """A process in which notebooks can be executed on a lake, with a Spark master; it ends with the block."""
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    env = os.environ | {LAKE: lake, MASTER: master, "PYTHONPATH": path}
    manager = AsyncKernelManager(kernel_name="python3")
    start, stop = run_sync(manager.start_kernel), run_sync(manager.shutdown_kernel)
    # Only errors: it warns of its local ports.
    start(extra_arguments=["--log-level=ERROR"], env=env, cwd=str(_ROOT))
    try:
        yield manager
    finally:
        stop(now=True)


class _Interrupts:
    """Ctrl-C while a notebook is executed: it kills the process, so that the execution ends at once.

    nbclient's own way ends in traces: it tidies up in a task that nobody waits for.
    """

    def __init__(self, manager: AsyncKernelManager) -> None:
        self._manager = manager
        self.came = False

    def listen(self, **_: object) -> None:
        """Called when nbclient has begun and has set its own handlers."""
        with suppress(ValueError, RuntimeError, NotImplementedError):  # not in the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._end)

    def _end(self) -> None:
        self.came = True
        if process := getattr(self._manager.provisioner, "pid", None):
            os.kill(process, signal.SIGKILL)


def execute(
    source: Path, target: Path, manager: AsyncKernelManager, progress: Progress | None = None
) -> None:
    """Execute the notebook `source` from top to bottom, and write it with its outputs to `target`.

    Raises:
        AnalysisError: a cell failed. What there was until then is in `target`, unless that is `source`.
        Interrupted: Ctrl-C.
    """
    notebook = _notebooks.read(source, as_version=4)
    # No names of the notebook before, but one that Spark Connect looks at.
    notebook.cells.insert(0, _notebooks.v4.new_code_cell("%reset -f\n__spec__ = None"))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    begun: list[NotebookNode] = []

    def begin(cell: NotebookNode, cell_index: int) -> None:
        if cell_index and cell.cell_type == "code":
            begun.append(cell)
            if progress:
                progress(len(begun), len(code) - 1)

    interrupts = _Interrupts(manager)
    # No timing in the outputs: the same figures give the same file.
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=1800,  # seconds, of a cell
        record_timing=False,
        on_notebook_start=interrupts.listen,
        on_cell_start=begin,
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, RuntimeError) as error:  # the last: it died
        if interrupts.came:
            raise Interrupted(f"Stopped by Ctrl-C while {source.name} was executed.") from None
        message = _failure(source, begun, error)
        if target != source:
            _write(notebook, target)
            message += f"\nWhat there was until then is in {target}."
        raise AnalysisError(message) from error
    finally:
        if client.kc:
            client.kc.stop_channels()
    _write(notebook, target)


def keep_picture(notebook: Path, target: Path) -> None:
    """Write the first picture of an executed notebook to a file."""
    cells = _notebooks.read(notebook, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    pictures = [
        output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})
    ]
    if not pictures:
        raise AnalysisError(f"{notebook} shows no picture")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(base64.b64decode(pictures[0]))


def _failure(source: Path, begun: Sequence[NotebookNode], error: Exception) -> str:
    if not begun:
        return f"{source.name} did not begin: {error}"
    cell, reason = begun[-1], str(error)
    if isinstance(error, DeadKernelError):
        reason = "Its process ended: out of memory, killed or interrupted."
    for output in cell.outputs:
        if output.output_type == "error":
            reason = f"{output.ename}: {output.evalue}"
    lines = [line for line in reason.strip().splitlines() if not line.startswith("\tat ")]
    shown = "\n".join(lines[:_SHOWN_LINES])  # of Java's traces only the causes
    code = "\n".join(f"    {line}" for line in cell.source.splitlines())
    return f"{source.name}, code cell {len(begun)} failed:\n{code}\n{shown}"


def _write(notebook: NotebookNode, target: Path) -> None:
    del notebook.cells[0]  # that of `execute`
    # Executions count from 1 on, as if the process were the notebook's own.
    executed = [cell for cell in notebook.cells if cell.get("execution_count")]
    for number, cell in enumerate(executed, start=1):
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
    notebook.metadata.pop("widgets", None)
    # Of the interpreter only its name: that of the machine at hand would change the file each time.
    notebook.metadata["language_info"] = {
        "name": "python",
        "version": "{}.{}".format(*sys.version_info),
    }
    nbformat.validate(notebook)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, [_notebooks.writes(notebook), "\n"])
