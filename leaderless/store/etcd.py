"""Objects in etcd, through the JSON gateway of its version 3 interface, which every member serves.

A version is etcd's `mod_revision`, which no two writes share. Each conditional write is one transaction, and
reads are linearizable, as etcd's own reads are by default. [etcd.io/docs/v3.5/learning/api]

etcd keeps everything in memory and takes requests up to 1.5 MiB: it is for logs of small records.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult

import httpx

from leaderless.store.options import StoreOptions
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    StoreError,
    Version,
)

PORT = 2379
VALUE_BYTES_MAX = 1 << 20  # of the 1.5 MiB of a request, in which the key stands too
_RESOURCE_EXHAUSTED, _INVALID, _UNAUTHENTICATED, _DENIED = 8, 3, 16, 7
_DELETES = 100  # in one transaction, of 128 that etcd allows

Json = dict[str, Any]


class EtcdStore:
    """A store in the etcd at `address`; user and password may stand in it, or in the options."""

    def __init__(self, address: SplitResult, options: StoreOptions) -> None:
        host = f"[{address.hostname}]" if ":" in (address.hostname or "") else address.hostname
        self.url = f"etcd://{host}:{address.port or PORT}"
        self.value_bytes_max = VALUE_BYTES_MAX
        self._user = address.username or options.access_key
        self._password = address.password or options.secret_key
        self._token: str | None = None
        base = options.endpoint or f"http://{host}:{address.port or PORT}"
        self._client = httpx.AsyncClient(base_url=base, timeout=options.timeout_s)

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        kvs = (await self._call("kv/range", {"key": _text(key)})).get("kvs", [])
        return Found(b64decode(kvs[0].get("value", "")), kvs[0]["mod_revision"]) if kvs else None

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        self._require_room(value)
        return _revision(await self._call("kv/put", {"key": _text(key), "value": _text(value)}))

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put_if(key, {"target": "CREATE", "create_revision": "0"}, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put_if(key, {"target": "MOD", "mod_revision": version}, value)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        for start in range(0, len(keys), _DELETES):
            some = keys[start : start + _DELETES]
            deletes = [{"request_delete_range": {"key": _text(key)}} for key in some]
            await self._call("kv/txn", {"success": deletes})

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""
        first = max(f"{folder}/" if folder else "", after and f"{after}\0", key=str.encode)
        question = {
            "key": _text(first or "\0"),
            "range_end": _text(f"{folder}0" if folder else "\0"),  # "0" follows "/"; NUL: no end
            "limit": limit,
            "keys_only": True,
            "sort_order": "ASCEND",
        }
        kvs = (await self._call("kv/range", question)).get("kvs", [])
        return [Listed(b64decode(kv["key"]).decode(), None, None) for kv in kvs]

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""
        await self._client.aclose()

    async def _put_if(self, key: str, condition: Json, value: bytes) -> Version:
        self._require_room(value)
        put = {"request_put": {"key": _text(key), "value": _text(value)}}
        compare = condition | {"key": _text(key), "result": "EQUAL"}
        answer = await self._call("kv/txn", {"compare": [compare], "success": [put]})
        if not answer.get("succeeded"):
            raise Conflict(f"{key} has another version")
        return _revision(answer)

    def _require_room(self, value: bytes) -> None:
        if len(value) > VALUE_BYTES_MAX:
            raise Refused(f"etcd takes values up to {VALUE_BYTES_MAX} bytes, not {len(value)}")

    async def _call(self, method: str, question: Json) -> Json:
        if self._user and self._token is None:
            self._token = await self._authenticate()
        headers = {"Authorization": self._token} if self._token else {}
        return await self._post(method, question, headers)

    async def _authenticate(self) -> str:
        asked = {"name": self._user, "password": self._password or ""}
        token: str = (await self._post("auth/authenticate", asked, {}))["token"]
        return token

    async def _post(self, method: str, question: Json, headers: dict[str, str]) -> Json:
        try:
            response = await self._client.post(f"/v3/{method}", json=question, headers=headers)
            answer = response.json()
        except (httpx.HTTPError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise OutcomeUnknown(f"{self.url}: {reason}") from error
        if response.status_code != 200 or not isinstance(answer, dict):
            raise self._classified(response.status_code, answer)
        return answer

    def _classified(self, status: int, answer: Any) -> StoreError:
        """An error of etcd by its gRPC code: [google.golang.org/grpc/codes]."""
        code, said = (
            (answer.get("code"), answer.get("error")) if isinstance(answer, dict) else (0, "")
        )
        text = f"{self.url}: {said or f'status {status}'}"
        if code == _UNAUTHENTICATED:
            self._token = None  # it may have expired: the next call asks for a new one
            return OutcomeUnknown(text)
        if code in (_DENIED, _INVALID) or (code == _RESOURCE_EXHAUSTED and "space" in text):
            return Refused(text)
        return OutcomeUnknown(text)


def _text(value: str | bytes) -> str:
    return b64encode(value.encode() if isinstance(value, str) else value).decode()


def _revision(answer: Json) -> Version:
    revision: str = answer["header"]["revision"]
    return revision
