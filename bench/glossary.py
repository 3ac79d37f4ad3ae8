"""What the names of anomalies mean: the sections of docs/anomalies.md, which alone says it."""

import re
from functools import cache
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "docs" / "anomalies.md"
_SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
# A cycle that also takes these orders has no section of its own.
_ORDERS = re.compile(r"-(process|realtime)$")


def meaning(name: str) -> str:
    """The Markdown below the heading of an anomaly; empty for a name without one."""
    sections = _sections()
    return sections.get(name) or sections.get(_ORDERS.sub("", name), "")


@cache
def _sections() -> dict[str, str]:
    text = FILE.read_text(encoding="utf-8") if FILE.is_file() else ""
    return {name: " ".join(body.split()) for name, body in _SECTION.findall(text)}
