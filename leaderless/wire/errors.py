"""Maelstrom's error registry: the codes, which of them are definite, and those of our own failures.

A definite error says that the operation certainly did not happen and never will; every other one, a custom
code of 1000 and more among them, leaves it open. [maelstrom doc/protocol.md, resources/errors.edn]
"""

from enum import IntEnum

from leaderless.core.messages import Reason


class ErrorCode(IntEnum):
    """Codes of an `error` body; the names are the registry's, with underscores."""

    TIMEOUT = 0
    NODE_NOT_FOUND = 1
    NOT_SUPPORTED = 10
    TEMPORARILY_UNAVAILABLE = 11
    MALFORMED_REQUEST = 12
    CRASH = 13
    ABORT = 14
    KEY_DOES_NOT_EXIST = 20
    KEY_ALREADY_EXISTS = 21
    PRECONDITION_FAILED = 22
    TXN_CONFLICT = 30

    @property
    def definite(self) -> bool:
        """Whether the operation certainly did not happen."""
        return self not in (ErrorCode.TIMEOUT, ErrorCode.CRASH)


CODES = {
    Reason.TIMEOUT: ErrorCode.TIMEOUT,
    Reason.CRASH: ErrorCode.CRASH,
    Reason.NOT_SUPPORTED: ErrorCode.NOT_SUPPORTED,
    Reason.BUSY: ErrorCode.TEMPORARILY_UNAVAILABLE,
    Reason.FENCED: ErrorCode.TEMPORARILY_UNAVAILABLE,
    Reason.UNFIT: ErrorCode.MALFORMED_REQUEST,
    Reason.OTHER_EPOCH: ErrorCode.PRECONDITION_FAILED,
}
