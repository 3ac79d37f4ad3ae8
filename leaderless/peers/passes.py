"""Who may hand over: whoever may write the log, which an object of its own proves.

Once in its life a program that asks creates `peer/SECONDS-WRITER` with the hash of a token, and it shows the
token to each peer that it asks. The peer reads the object. So whoever may only read the log gets nothing in,
though it knows the hash. An object is of no use after the life of its program: a vacuum deletes old ones, and a
program that misses its own makes it again.
"""

import secrets
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest

import anyio
import orjson

from leaderless.peers.lines import Stranger, writer_of
from leaderless.store.names import PEERS, is_own
from leaderless.store.port import Conflict, Store


class Pass:
    """The pass of the program `writer` for the log in `store`. `now`: seconds since 1970."""

    def __init__(self, store: Store, writer: str, now: Callable[[], float]) -> None:
        self._store = store
        self._made = False
        self._lock = anyio.Lock()
        self.key: str = f"{PEERS}/{int(now())}-{writer}"
        self.token: str = secrets.token_hex(32)

    async def make(self) -> None:
        """See that the object is there. Raises `StoreError`."""
        async with self._lock:
            if not self._made:
                # It may be there by an earlier try; nobody else has the name.
                with suppress(Conflict):
                    await self._store.create(self.key, orjson.dumps({"sha256": _hash(self.token)}))
                self._made = True

    def missed(self) -> None:
        """A peer did not let this program in: the object may be gone."""
        self._made = False


async def require_writer(store: Store, peer: str, key: str, token: str) -> None:
    """Raise `Stranger` unless the peer may write the log; `StoreError` if that cannot be known now."""
    if not (is_own(key) and key.startswith(f"{PEERS}/") and key.endswith(f"-{writer_of(peer)}")):
        raise Stranger(f"it names {key!r:.80} as its own")
    found = await store.read(key)
    made = orjson.loads(found.value) if found else None
    if not isinstance(made, dict) or not compare_digest(str(made.get("sha256")), _hash(token)):
        raise Stranger(f"its token is not that of {key}")


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
