"""Of orjson what the bench uses, where no orjson is: CPython in WebAssembly, which has none.

Its bytes are those of orjson but for floats below 1e-4 or from 1e16 on, which Python writes otherwise.
"""

import json
from collections.abc import Callable
from typing import Any, NoReturn

OPT_NON_STR_KEYS, OPT_SORT_KEYS, OPT_APPEND_NEWLINE = 4, 32, 1024
OPT_PASSTHROUGH_DATACLASS, OPT_PASSTHROUGH_DATETIME, OPT_PASSTHROUGH_SUBCLASS = 2048, 512, 256
JSONDecodeError = json.JSONDecodeError


class JSONEncodeError(TypeError):
    """A value that has no JSON."""


class Fragment:
    """JSON that is finished."""

    def __init__(self, contents: bytes) -> None:
        self.contents = contents


def dumps(value: Any, default: Callable[[Any], Any] | None = None, option: int = 0) -> bytes:
    try:
        text = json.dumps(
            value,
            default=default,
            allow_nan=False,
            ensure_ascii=False,
            separators=(",", ":"),
            sort_keys=bool(option & OPT_SORT_KEYS),
        )
        return text.encode() + b"\n" * bool(option & OPT_APPEND_NEWLINE)
    except (TypeError, ValueError) as error:
        raise JSONEncodeError(str(error)) from error


def loads(text: bytes | str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise JSONDecodeError(f"{name} is no JSON", name, 0)
