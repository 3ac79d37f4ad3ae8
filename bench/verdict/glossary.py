"""What the names of anomalies mean: the sections of docs/bench/anomalies.md."""

import re
from functools import cache
from pathlib import Path

from runs.house import HOUSE

GLOSSARY = HOUSE / "docs" / "bench" / "anomalies.md"
_SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
# A cycle that also takes these orders has no section of its own.
_ORDERS = re.compile(r"-(process|realtime)$")


def meaning(name: str) -> str:
    """The Markdown below the heading of an anomaly in docs/bench/anomalies.md; empty for a name without one."""
    sections = _sections()
    return sections.get(name) or sections.get(_ORDERS.sub("", name), "")


@cache
def _sections() -> dict[str, str]:
    text = GLOSSARY.read_text(encoding="utf-8") if GLOSSARY.is_file() else ""
    return {title: " ".join(body.split()) for title, body in _SECTION.findall(text)}


def where() -> str:
    """Where the names of anomalies are explained: a path from here, or a whole one."""
    here = Path.cwd()
    path = GLOSSARY.relative_to(here) if GLOSSARY.is_relative_to(here) else GLOSSARY
    return f"What the names mean: {path}"
