"""Errors of the library. Each says whether what was asked may have happened."""

__all__ = [
    "Broken",
    "Closed",
    "Definite",
    "Fenced",
    "Indefinite",
    "KeyClosed",
    "LogError",
    "NotInitialised",
    "NotOwner",
    "OffsetConflict",
    "OffsetOutOfRange",
    "OtherFormat",
    "StaleToken",
    "Unfit",
    "Unreachable",
]


class LogError(Exception):
    """A log did not do what it was asked; the text says why."""


class Definite(LogError):
    """It did not happen, and will not."""


class Indefinite(LogError):
    """It may have happened, or may still happen. A read tells; to ask again may do it twice."""


class Unreachable(Definite):
    """The store gave no clear answer, and it was asked for nothing that changes anything."""


class Fenced(Definite):
    """The log takes no appends until `unfence`."""


class Unfit(Definite, ValueError):
    """A value, key or name cannot be kept: it is no JSON, too large, or too long."""


class NotInitialised(Definite):
    """There is no log at this place."""


class OtherFormat(Definite):
    """Another version wrote it, and the text says how to go on; or what is there is no log."""


class OffsetOutOfRange(Definite):
    """A retention deleted the record; `earliest` is the first one that `key` has."""

    def __init__(self, key: str, offset: int, earliest: int, hint: str = "") -> None:
        text = f"key {key!r} begins at offset {earliest}; {offset} was deleted"
        super().__init__(f"{text}: {hint}" if hint else text)
        self.key: str = key
        self.offset: int = offset
        self.earliest: int = earliest


class OffsetConflict(Definite):
    """The key ends elsewhere than the append expected, at offset `end`."""

    def __init__(self, text: str, end: int) -> None:
        super().__init__(text)
        self.end: int = end


class StaleToken(Definite):
    """The key has a higher `token` than the append."""

    def __init__(self, text: str, token: int) -> None:
        super().__init__(text)
        self.token: int = token


class KeyClosed(Definite):
    """The key was closed, and ends before offset `end` for ever."""

    def __init__(self, text: str, end: int) -> None:
        super().__init__(text)
        self.end: int = end


class NotOwner(Definite):
    """Another member of the group owns the key now; the record will be delivered there."""


class Closed(Indefinite):
    """The log was closed while this was under way."""


class Broken(Indefinite):
    """What the store holds does not fit together; `leaderless fsck` names what."""
