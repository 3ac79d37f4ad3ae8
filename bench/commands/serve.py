"""`./maelstrom serve`: the runs of a store in a browser."""

import errno
import logging
import socket
from pathlib import Path
from typing import Any

import click

from bench.system import sigterm_as_interrupt

ADDRESS = "127.0.0.1"  # never another: the pages show the output of nodes to every client


@click.command()
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder with runs somewhere below it: ours, a sweep, or the real tool's store.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen at; 0 takes a free one.",
)
def serve(store: Path, port: int) -> None:
    """Show the runs of a store in a browser, on this machine only.

    What was computed of a run is kept in its folder: figures.json and findings.json.
    """
    server = make_server(store, port)
    click.echo(f"Runs of {store} at http://{ADDRESS}:{server.port}/  (Ctrl-C ends)")
    with sigterm_as_interrupt():
        server.serve_forever()  # until Ctrl-C, which closes it
    click.echo("Stopped.")


def make_server(store: Path, port: int) -> Any:
    """A threaded server for the pages of `store`, listening.

    Raises:
        click.UsageError: the port cannot be had.
    """
    from werkzeug.serving import ThreadedWSGIServer

    from bench.pages.app import create_app
    from bench.pages.facts import Shelf
    from runs.store import Store

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # nothing of requests that went well
    app = create_app(Shelf(Store(store)))
    try:
        # Werkzeug would end the process when the port is taken; so the socket is made here.
        listening = socket.create_server((ADDRESS, port), backlog=128)
    except OSError as error:
        why = (
            f"Port {port} is taken, perhaps by another `maelstrom serve`. "
            "Give another with --port, or any free one with --port 0."
            if error.errno == errno.EADDRINUSE
            else f"Port {port} cannot be listened at ({error.strerror}). Give another with --port."
        )
        raise click.UsageError(why) from None
    server = ThreadedWSGIServer(ADDRESS, port, app, fd=listening.detach())
    server.daemon_threads = True  # a download that goes on does not hold up the end
    return server
