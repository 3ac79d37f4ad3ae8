"""Draw the pictures of README and docs into docs/images: `make reference` calls this, after the notebooks.

    .venv/bin/python -m docs.pictures                      # all of them, two minutes; needs Chromium
    .venv/bin/python -m docs.pictures verdict              # those of these names

Two kinds of pictures come from elsewhere, because they stand beside tables of the same figures:
`notebook-*.png` from the notebooks (`.ci/reference`), `performance-*.svg` from `make performance-scaling`
and `python -m performance.crowd --page`.
"""

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from PIL import Image
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from runs.plots.picture import with_palette

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
RECORDED = "tests/fixtures/maelstrom-stores/duplicates-partition-5-nodes"
COLUMNS = 100  # of the terminal
WIDTH = 1100  # of the browser
TEST = "./maelstrom test -w kafka --bin ./run.sh"
# The run that docs/bench/faults.md shows.
FAULTS = (
    f"{TEST} --node-count 5 --concurrency 2n --rate 100 --latency 5 --time-limit 30 --strict"
    " --nemesis all --nemesis-interval 3 --seed 7"
)
PAGES = (
    f"{TEST} --node-count 3 --concurrency 2n --rate 200 --time-limit 8 --recovery-time 1"
    " --nemesis partition --nemesis-interval 2"
)
# rich's template fetches its fonts from elsewhere; a picture must be complete in itself.
TERMINAL = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def verdict() -> None:
    """The verdict on a recorded run, as a terminal shows it: it changes only with the checker."""
    command = ["./maelstrom", "check", RECORDED]
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, file=nowhere, width=COLUMNS)
        console.print(f"$ {' '.join(command)}", style="bold", highlight=False)
        console.print(Text.from_ansi(done.stdout.rstrip()))
    (IMAGES / "verdict.svg").write_text(
        console.export_svg(title="the verdict on a run", code_format=TERMINAL)
    )


def why_prefetch_fails() -> None:
    """The messages of docs/learn/why-prefetch-fails.md: a run on the virtual clock, the same every time."""
    from tests.why_prefetch_fails import main as draw

    draw()


def faults() -> None:
    """Latencies of a real run under all nine faults."""
    with tempfile.TemporaryDirectory() as store:
        _run_test(FAULTS, Path(store))
        (drawn,) = Path(store).glob("kafka/2*/latency-raw.png")
        shutil.copy(drawn, IMAGES / "faults.png")


def pages() -> None:
    """The page of a run, and two runs compared; the runs are real, so their figures differ each time."""
    from bench.commands.serve import make_server
    from tests.browser import chromium

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "results"
        for strategy in ("leaderless", "cas", "prefetch"):
            _run_test(f"{PAGES} -- --strategy {strategy}", store)
        leaderless, cas, prefetch = sorted(
            found.parent.relative_to(store).as_posix() for found in store.glob("kafka/2*/test.json")
        )
        server = make_server(store, 0)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with chromium() as browser:
            for name, page, last in (
                ("pages-run.png", f"run/{prefetch}", "#lamport"),
                ("pages-compare.png", f"compare?run={leaderless}&run={cas}", "#latency"),
            ):
                browser.set_window_size(WIDTH, 900)
                browser.get(f"http://127.0.0.1:{server.port}/{page}")
                _shoot(browser, name, last)
        server.shutdown()


def explorer() -> None:
    """The explorer's page, in the step in which it shows that the published S3-Queue has lost a message."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    from tests.browser import chromium

    with chromium(width=WIDTH) as browser:
        browser.get((ROOT / "docs" / "explorer.html").as_uri())
        Select(browser.find_element(By.ID, "book")).select_by_visible_text(
            "S3-Queue as published: a lost write"
        )
        browser.find_element(By.ID, "failure").click()
        _shoot(browser, "explorer.png", ".board")


def _shoot(browser: Any, name: str, last: str) -> None:
    """The page as far as its element `last`, in a few colours."""
    from tests.browser import shoot

    path = IMAGES / name
    bottom = f"return document.querySelector('{last}').getBoundingClientRect().bottom"
    shoot(browser, path, width=WIDTH, height=browser.execute_script(bottom) + 16)
    with Image.open(path) as image:
        path.write_bytes(with_palette(image))


def _run_test(command: str, store: Path) -> None:
    """Run a test into `store`; a verdict is a result, so the exit status may be 1 or 2."""
    options, dashes, arguments = command.partition(" -- ")
    whole = [*options.split(), "--store", str(store), *(dashes + arguments).split()]
    if subprocess.run(whole, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode > 2:
        raise click.ClickException(f"this run could not be finished: {command}")


PICTURES: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "verdict": (verdict, ("verdict.svg",)),
    "why-prefetch-fails": (why_prefetch_fails, ("why-prefetch-fails.svg",)),
    "faults": (faults, ("faults.png",)),
    "explorer": (explorer, ("explorer.png",)),
    "pages": (pages, ("pages-run.png", "pages-compare.png")),
}


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice([*PICTURES]))
def main(names: tuple[str, ...]) -> None:
    IMAGES.mkdir(exist_ok=True)
    for name in names or PICTURES:
        draw, files = PICTURES[name]
        draw()
        click.echo("\n".join(f"docs/images/{file}" for file in files))


if __name__ == "__main__":
    main()
