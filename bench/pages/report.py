"""The page of a run, or of a sweep, as one file that refers to nothing outside itself."""

import base64
from pathlib import Path
from typing import Any

from bench.pages import pictures, render
from bench.pages.facts import Shelf
from bench.pages.run_page import run_values
from bench.pages.sweep_page import sweep_values
from runs.files import SWEEP_INDEX, RunsError
from runs.store import Folder, Store, is_run
from runs.writing import write_whole

DETAILS = 24  # runs of a sweep that are shown one by one, those that are not valid first


def write_report(path: Path, file: Path | None = None) -> Path:
    """Write the page of the run or sweep in `path`, which may be a link, and return the page's file.

    Args:
        path: a run's folder, or that of a sweep.
        file: where to; by default `report.html` in the folder.
    Raises:
        RunsError: there is neither run nor sweep, or the file cannot be written.
    """
    page = make_report(path)
    target = file or path / "report.html"
    try:
        if file:  # who names a place may name a link, or a pipe
            file.write_text(page, encoding="utf-8")
        else:
            write_whole(target, [page])
    except OSError as error:
        raise RunsError(
            f"cannot write the page: {error}; name another place with --output"
        ) from error
    return target


def make_report(path: Path) -> str:
    folder = path.resolve()
    if is_run(folder):
        values = run_values(Shelf(Store(folder.parent.parent)), folder_of(folder))
        picture = base64.b64encode(values["lamport"].encode()).decode()
        uri = f"data:image/svg+xml;base64,{picture}"
        return render.page("run.html.j2", served=False, lamport_uri=uri, **values)
    if (folder / SWEEP_INDEX).is_file():
        return _of_sweep(folder)
    if not path.exists():
        raise RunsError(f"{path} does not exist")
    raise RunsError(
        f"{path} holds no run: there is no history.jsonl, history.edn or test.json in it.\n"
        f"Give the folder of a run, such as results/latest, or that of a sweep ({SWEEP_INDEX})."
    )


def folder_of(path: Path) -> Folder:
    """The run in `path`, named as in a store two folders up."""
    folder = path.resolve()
    return Folder(folder, f"{folder.parent.name}/{folder.name}")


def _of_sweep(folder: Path) -> str:
    shelf = Shelf(Store(folder))
    runs = sorted(shelf.store.runs(), key=lambda run: shelf.facts(run).verdict == "valid")
    return render.page(
        "sweep.html.j2",
        served=False,
        details=[_brief(shelf, run) for run in runs[:DETAILS]],
        left_out=max(0, len(runs) - DETAILS),
        **sweep_values(folder.name, folder),
    )


def _brief(shelf: Shelf, run: Folder) -> dict[str, Any]:
    figures = shelf.figures(run)
    return {
        "facts": shelf.facts(run),
        "figures": figures,
        "findings": shelf.findings(run),
        "latency": pictures.latency_over_time(figures)[0],
    }
