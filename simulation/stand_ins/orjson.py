"""Of orjson what the bench uses, for CPython in WebAssembly, which has none.

Its bytes are those of orjson but for floats below 1e-4 or from 1e16 on, which Python writes otherwise. `dumps`
takes keys and numbers that orjson refuses.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

OPT_NON_STR_KEYS, OPT_SORT_KEYS = 4, 32
JSONDecodeError = json.JSONDecodeError
_LONG, _SURROGATE = re.compile(r"\d{19}"), re.compile(r"\\u[dD][89a-fA-F]")


def dumps(value: Any, default: Callable[[Any], Any] | None = None, option: int = 0) -> bytes:
    try:
        return json.dumps(
            value,
            default=default,
            allow_nan=False,
            ensure_ascii=False,
            separators=(",", ":"),
            sort_keys=bool(option & OPT_SORT_KEYS),
        ).encode()
    except ValueError as error:
        raise TypeError(str(error)) from error


def loads(text: bytes | str) -> Any:
    try:
        decoded = text if isinstance(text, str) else bytes(text).decode()
        value = json.loads(
            decoded, parse_constant=_refuse, parse_int=_number if _LONG.search(decoded) else None
        )
        if _SURROGATE.search(decoded):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise JSONDecodeError(str(error), "", 0) from None
    return value


def _refuse(name: str) -> NoReturn:
    raise JSONDecodeError(f"{name} is no JSON", name, 0)


def _number(digits: str) -> float:
    """A whole number of 64 bits, or a float."""
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else float(digits)
