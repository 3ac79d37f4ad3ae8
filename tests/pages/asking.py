"""Asks for pages as a browser does."""

import html
import math
import re
from pathlib import Path

from flask.testing import FlaskClient

from pages.app import create_app
from pages.cache import Cache
from pages.library import Library
from runs.store import Store

NOW_S = 2e9


def client_of(store: Path, now_s: float = NOW_S, list_budget_s: float = math.inf) -> FlaskClient:
    """Its list is complete at once, however slow the machine, unless it has a budget."""
    library = Library(Store(store), Cache(store / ".cache"), clock=lambda: now_s)
    return create_app(library, list_budget_s).test_client()


def text_of(client: FlaskClient, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


def listed(client: FlaskClient, query: str = "") -> list[str]:
    """Names of the runs in the list, in its order."""
    return re.findall(r'name="run" value="([^"]*)"', text_of(client, f"/?{query}"))
