"""The pages of a store over HTTP, for people at this machine.

Laws: GET only; nothing outside the store, nothing that is no file of a run; files of runs are shown in a
sandbox, because whatever wrote them is not trusted; a request is answered only if it names this machine
as its host, so that no page elsewhere can read the store through a name of its own.
"""

import time
from typing import TypeVar
from urllib.parse import quote

from flask import Flask, Response, request, send_file
from werkzeug.exceptions import BadRequest, HTTPException, NotFound

from bench.pages import listing, render
from bench.pages.compared import compare_values
from bench.pages.facts import Shelf
from bench.pages.pictures import live_values
from bench.pages.run_page import run_values
from bench.pages.sweep_page import sweep_values
from bench.pages.tab import FILES, INDEX, POLICY, TAB
from runs.files import TIMELINE
from runs.live import live_names
from runs.plots.timeline import PART
from runs.store import Folder, Store

_PAGE_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self';"
    " img-src 'self' data:; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Timelines have a script of their own; it runs without an origin, and reaches nothing.
_FILE_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline';"
    " script-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_TEXTS = (".edn", ".jsonl", ".log", ".txt", ".json")
_EXPLAINED = {
    400: "That cannot be asked",
    404: "There is no such page",
    405: "Pages can only be read",
}


NOT_HERE = "It may have been moved or deleted, or the address is wrong."
T = TypeVar("T")


def _there(found: T | None, why: str = NOT_HERE) -> T:
    """What was asked for. Raises `NotFound`, which says why there is none."""
    if found is None:
        raise NotFound(why)
    return found


def create_app(shelf: Shelf, list_budget_s: float = listing.BUDGET_S) -> Flask:
    """The pages of a shelf; `list_budget_s` bounds what one request for the list computes."""
    app = _without_pages()

    def run_of(name: str) -> Folder:
        why = f"The store has no run {name!r}. It may have been moved or deleted."
        return _there(shelf.store.run(name), why)

    @app.get("/")
    def runs() -> str:
        return render.page(
            "runs.html.j2",
            store=str(shelf.store.root),
            lives=live_names(shelf.store.root),
            has_tab=(shelf.store.root / TAB / INDEX).is_file(),
            **listing.list_values(shelf, request.args, list_budget_s),
        )

    @app.get("/run/<path:name>")
    def run(name: str) -> str:
        return render.page("run.html.j2", **run_values(shelf, run_of(name)))

    @app.get("/compare")
    def compare_runs() -> str:
        names = request.args.getlist("run")
        if len(names) != 2:
            raise BadRequest("Choose two runs in the list to compare them.")
        return render.page("compare.html.j2", **compare_values(shelf, *map(run_of, names)))

    @app.get("/sweep/<path:name>")
    def sweep(name: str) -> str:
        folder = _there(shelf.store.sweep(name), f"The store has no sweep {name!r}.")
        values = sweep_values(name.rstrip("/"), folder)
        return render.page("sweep.html.j2", details=(), left_out=0, **values)

    @app.get("/timeline/<path:name>")
    def timeline(name: str) -> str:
        found = run_of(name)
        first = max(request.args.get("from", 0, type=int), 0)
        at = request.args.get("at", type=int)  # the index of an operation that shows an anomaly
        drawn = shelf.timeline(found, first) or shelf.store.file(f"{found.name}/{TIMELINE}")
        source = f"/timeline-page/{quote(found.name)}?from={first}" if drawn else ""
        return render.page(
            "timeline.html.j2",
            name=found.name,
            source=source + (f"#op-{at}" if at is not None and source else ""),
            problem="The history is missing, damaged, or too large to draw its operations one by one.",
            first=first,
            part=PART,
            total=shelf.figures(found).operations,
        )

    @app.get("/timeline-page/<path:name>")
    def timeline_page(name: str) -> Response:
        found = run_of(name)
        if drawn := shelf.timeline(found, max(request.args.get("from", 0, type=int), 0)):
            return _sandboxed(Response(drawn, mimetype="text/html"))
        file = _there(shelf.store.file(f"{found.name}/{TIMELINE}"))  # the bench's, of a large run
        return _sandboxed(send_file(file, mimetype="text/html"))

    @app.get("/lamport/<path:name>")
    def lamport(name: str) -> Response:
        why = "No message of an anomaly was found in this run."
        drawn = _there(shelf.lamport(run_of(name)) or None, why)
        return _sandboxed(Response(drawn, mimetype="image/svg+xml"))

    @app.get("/file/<path:name>")
    def file(name: str) -> Response:
        why = f"The store has no file {name!r} that belongs to a run."
        found = _there(shelf.store.file(name), why)
        kind = "text/plain" if found.suffix in _TEXTS else None
        return _sandboxed(send_file(found, mimetype=kind, conditional=True))

    _add_live_pages(app, shelf)
    _add_tab(app, shelf.store)
    return app


def _without_pages() -> Flask:
    app = Flask("bench.pages", static_url_path="/static")
    app.config["TRUSTED_HOSTS"] = ["127.0.0.1", "localhost", "[::1]"]
    app.after_request(_guard)
    app.register_error_handler(HTTPException, _friendly)
    app.register_error_handler(Exception, _broken)
    return app


def _add_live_pages(app: Flask, shelf: Shelf) -> None:
    @app.get("/live/<name>")
    def live(name: str) -> str:
        values = live_values(shelf.store.root, name, time.time())
        return render.page("live.html.j2", **_there(values, f"The store has no live log {name!r}."))


def _add_tab(app: Flask, store: Store) -> None:
    @app.get("/tab/", defaults={"name": INDEX})
    @app.get("/tab/<path:name>")
    def tab(name: str) -> Response:
        file = store.inside(f"{TAB}/{name}") if name in FILES else None
        why = "There is no such file. `./maelstrom tab` writes the page of a browser tab."
        response = send_file(_there(file, why), conditional=True)
        here = f"connect-src {request.host_url}tab/"  # a node reaches no page of a run
        response.headers["Content-Security-Policy"] = POLICY.replace("connect-src 'self'", here)
        return response


def _sandboxed(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = _FILE_POLICY
    return response


def _guard(response: Response) -> Response:
    response.headers.setdefault("Content-Security-Policy", _PAGE_POLICY)
    response.headers.update(_HEADERS)
    return response


def _friendly(error: HTTPException) -> Response | tuple[str, int]:
    code = error.code or 500
    if code < 400:  # a redirect
        return error.get_response()  # type: ignore[return-value]
    text = NOT_HERE if error.description == NotFound.description else error.description or ""
    return render.page("error.html.j2", title=_EXPLAINED.get(code, error.name), text=text), code


def _broken(error: Exception) -> tuple[str, int]:
    """A run that is deleted while it is shown ends here, and so does a mistake of ours."""
    if isinstance(error, FileNotFoundError):
        return render.page("error.html.j2", title="The run went away", text=str(error)), 404
    import traceback

    traceback.print_exception(error)
    text = "The terminal in which `maelstrom serve` runs has the details."
    return render.page("error.html.j2", title="This page could not be made", text=text), 500
