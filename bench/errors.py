"""Maelstrom's error codes: their names, and whether the request certainly did not happen.

Codes that are not listed (1000 and above are free for users) are indefinite.
"""

from typing import Any

from workloads.interface import RpcError

# code -> (name, definite)
ERRORS = {
    0: ("timeout", False),
    1: ("node-not-found", True),
    10: ("not-supported", True),
    11: ("temporarily-unavailable", True),
    12: ("malformed-request", True),
    13: ("crash", False),
    14: ("abort", True),
    20: ("key-does-not-exist", True),
    21: ("key-already-exists", True),
    22: ("precondition-failed", True),
    30: ("txn-conflict", True),
}
UNKNOWN = ("unknown", False)


def error_of(body: dict[str, Any]) -> RpcError:
    """The exception that stands for an error reply; its code is -1 when the reply has no integer."""
    given = body.get("code")
    code = given if type(given) is int else -1
    name, definite = ERRORS.get(code, UNKNOWN)
    return RpcError(code, name, body.get("text"), definite)
