"""Templates beside this module, filled in; everything that comes from a run is escaped."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plots import style

# What no XML document may hold, not even escaped; nodes are free to send it.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """Fill in the template of this file name; `style` is there for its colours."""
    text = _environment().get_template(template).render(style=style, **values)
    return _FORBIDDEN.sub("\ufffd", text)
