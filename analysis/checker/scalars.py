"""Keys and messages as text that is equal exactly when `workloads.kafka.checker` holds them equal.

7 -> `7`      "7" -> `"7`      anything else -> `#` and its EDN
"""

from typing import Any

from workloads.kafka.checker.facts import Opaque

TEXT, OPAQUE = '"', "#"


def encode(value: Any) -> str:
    """The text of a key or message (of what `facts.scalar` returns)."""
    if type(value) is Opaque:
        return OPAQUE + str(value)
    return TEXT + value if isinstance(value, str) else str(value)


def decode(text: str) -> Any:
    """The key or message that `text` stands for."""
    if text[0] == TEXT:
        return text[1:]
    return Opaque(text[1:]) if text[0] == OPAQUE else int(text)
