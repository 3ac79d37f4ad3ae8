"""Who may hand over: whoever may write the log, which an object of its own proves.

Once in its life a program that asks creates `peer/SECONDS-WRITER` with the hash of a token. So whoever may only
read the log gets nothing in, though it knows what the object holds. An object is of no use after the life of
its program: a vacuum deletes old ones, and a program that lives longer makes its own again.

On one machine a program shows the token to each peer that it asks. On a network others could hear it: there it
says nothing of it, and in place of the hash the object has 2 to the power of the token, modulo a prime. From
the token of one and the object of the other both ends of a link, and nobody else, have one secret [W. Diffie,
M. Hellman, New Directions in Cryptography, 1976]. The prime is that of group 14 of RFC 3526.
"""

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from math import inf
from secrets import token_hex
from typing import Any

import orjson

from leaderless.peers.lines import Stranger, writer_of
from leaderless.store.names import PEERS, is_own
from leaderless.store.port import Conflict, Store

AGAIN_S = 60.0  # after so long the object may be gone; no vacuum deletes one that is not much older
BASE, PRIME = (
    2,
    int(
        "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08"
        "798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637"
        "ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598"
        "DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E"
        "4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52"
        "C9DE2BCBF6955817183995497CEA956AE515D2261898FA051015728E5A8AACAA68FFFFFFFFFFFFFFFF",
        16,
    ),
)


class Pass:
    """The pass of the program `writer` for the log in `store`; `now`: seconds since 1970.

    `sealed`: it is shown on a network.
    """

    def __init__(
        self, store: Store, writer: str, now: Callable[[], float], *, sealed: bool
    ) -> None:
        self._store, self._now, self._sealed = store, now, sealed
        self._field = "public" if sealed else "sha256"  # of an object
        self._made_at = -inf
        self.key: str = f"{PEERS}/{int(now())}-{writer}"
        self.token: str = token_hex(32)

    async def shown(self) -> dict[str, str]:
        """What a program shows of it to a peer; the object is there. Raises `StoreError`."""
        if self._now() > self._made_at + AGAIN_S:
            with suppress(Conflict):  # it is there; nobody else has the name
                await self._store.create(
                    self.key, orjson.dumps({self._field: self._proof(self.token)})
                )
            self._made_at = self._now()
        return {
            "object": self.key,
            **({"nonce": token_hex(16)} if self._sealed else {"token": self.token}),
        }

    def _proof(self, token: str) -> str:
        """What the object of a token has."""
        return (
            f"{pow(BASE, int(token, 16), PRIME):x}"
            if self._sealed
            else sha256(token.encode()).hexdigest()
        )

    async def secret_with(self, peer: str, shown: dict[str, Any]) -> bytes:
        """What only this program and the peer know, on a network; `shown`: what the peer has shown.

        Raises `Stranger` unless the peer may write the log; `StoreError` if that cannot be known now.
        """
        key = str(shown.get("object"))
        if not (
            is_own(key) and key.startswith(f"{PEERS}/") and key.endswith(f"-{writer_of(peer)}")
        ):
            raise Stranger(f"it names {key!r:.80} as its own")
        made: Any = orjson.loads(found.value) if (found := await self._store.read(key)) else None
        if not isinstance(made, dict) or not isinstance(proof := made.get(self._field), str):
            raise Stranger(f"{key} is no object of a peer")
        if not self._sealed:
            if proof != self._proof(str(shown.get("token"))):
                raise Stranger(f"its token is not that of {key}")
            return b""
        if not 1 < (of_peer := int(proof, 16)) < PRIME - 1:
            raise Stranger(f"{key} has {proof!r:.80} as public")
        return pow(of_peer, int(self.token, 16), PRIME).to_bytes(256, "big")
