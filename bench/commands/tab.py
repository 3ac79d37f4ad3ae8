"""`./maelstrom tab`: a page that simulates nodes in a browser."""

from pathlib import Path

import click


@click.command()
@click.option(
    "--pyodide",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder of the npm package pyodide: CPython in WebAssembly.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/tab"),
    show_default=True,
    help="Where to write the page's files (14 MB).",
)
def tab(pyodide: Path, out: Path) -> None:
    """Write a page that simulates Python nodes on the kit in a browser tab, with nothing installed.

    It is files alone, for any web server. Nothing is downloaded.
    """
    from bench.pages.tab import INDEX, write_tab

    write_tab(out, pyodide)
    click.echo(
        f"Written: {out / INDEX}. `./maelstrom serve` shows the page of results/tab at /tab/."
    )
