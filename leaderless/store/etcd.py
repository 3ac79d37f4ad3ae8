"""Objects in etcd, through the JSON gateway of its version 3 interface, which every member serves.

A version is etcd's `mod_revision`, which no two writes share. Each conditional write is one transaction, and
reads are linearizable, as etcd's own reads are by default. [etcd.io/docs/v3.5/learning/api]

Reach and secrets come from the options, or from the variables of etcd's own tool: `ETCDCTL_USER` (as NAME or
NAME:PASSWORD), `ETCDCTL_PASSWORD`, and for TLS `ETCDCTL_CACERT`, `ETCDCTL_CERT`, `ETCDCTL_KEY`. TLS is used
when the endpoint begins with `https:`, or `ETCDCTL_CACERT` is set.

etcd keeps everything in memory and takes requests up to 1.5 MiB: it is for logs of small records.
"""

import os
import ssl
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import SplitResult

import httpx

from leaderless.store.options import Reach, StoreOptions
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    StoreError,
    Version,
    require_page,
)

PORT = 2379
VALUE_BYTES_MAX = 1 << 20  # of the 1.5 MiB of a request, in which the key stands too
_RESOURCE_EXHAUSTED, _INVALID, _UNAUTHENTICATED, _DENIED, _PRECONDITION = 8, 3, 16, 7, 9
_ADVICE = {
    "space exceeded": "its database is full: compact and defragment it, then `etcdctl alarm disarm`, or raise "
    "--quota-backend-bytes",
    "user name is empty": "give a user: ETCDCTL_USER=NAME:PASSWORD",
    "authentication failed": "check user and password",
    "authentication is not enabled": "it knows no users: leave user and password out",
    "permission denied": "check what the user may read and write",
}
_DELETES = 100  # in one transaction, of 128 that etcd allows

Json = dict[str, Any]
T = TypeVar("T")


class EtcdStore:
    """A store in the etcd at `address`; user and password may stand in it, or in the options."""

    def __init__(self, address: SplitResult, options: StoreOptions) -> None:
        host = f"[{address.hostname}]" if ":" in (address.hostname or "") else address.hostname
        self.url: str = f"etcd://{host}:{address.port or PORT}"
        self.value_bytes_max = VALUE_BYTES_MAX
        user, _, password = os.environ.get("ETCDCTL_USER", "").partition(":")
        self._user = address.username or options.access_key or user
        known = password or os.environ.get("ETCDCTL_PASSWORD", "")
        self._password = address.password or options.secret_key or known
        self._token: str | None = None
        self._reach = Reach()
        self._client = _client(f"{host}:{address.port or PORT}", options)

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        return await self._call("kv/range", {"key": _text(key)}, partial(_found, key))

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `leaderless.store.port.Store`."""
        compare = _is_version(key, known.version)
        otherwise = [{"request_range": {"key": _text(key)}}]

        def found(answer: Json) -> Found | None:
            if _succeeded(answer):
                return known
            [response] = answer["responses"]
            return _found(key, response["response_range"])

        return await self._call("kv/txn", {"compare": [compare], "failure": otherwise}, found)

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        self._require_room(value)
        return await self._call("kv/put", {"key": _text(key), "value": _text(value)}, _revision)

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        missing = {"target": "CREATE", "create_revision": "0", "key": _text(key), "result": "EQUAL"}
        return await self._put_if(key, missing, value)

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put_if(key, _is_version(key, version), value)

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""
        for start in range(0, len(keys), _DELETES):
            some = keys[start : start + _DELETES]
            deletes = [{"request_delete_range": {"key": _text(key)}} for key in some]
            await self._call("kv/txn", {"success": deletes}, _succeeded)

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

        def page(answer: Json) -> list[Listed]:
            keys = [_bytes(kv["key"]).decode() for kv in answer.get("kvs", [])]
            return require_page([Listed(key, None, None) for key in keys], folder, after)

        return await self._call("kv/range", question, page)

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""
        await self._client.aclose()

    async def _put_if(self, key: str, compare: Json, value: bytes) -> Version:
        self._require_room(value)
        put = {"request_put": {"key": _text(key), "value": _text(value)}}

        def new(answer: Json) -> Version | None:
            revision = _revision(answer)  # an answer without one makes no sense, whatever it says
            return revision if _succeeded(answer) else None

        version = await self._call("kv/txn", {"compare": [compare], "success": [put]}, new)
        if version is None:
            raise Conflict(f"{key} has another version")
        return version

    def _require_room(self, value: bytes) -> None:
        if len(value) > VALUE_BYTES_MAX:
            raise Refused(f"etcd takes values up to {VALUE_BYTES_MAX} bytes, not {len(value)}")

    async def _call(self, method: str, question: Json, decode: Callable[[Json], T]) -> T:
        if not self._user:
            return await self._post(method, question, decode)
        self._token = self._token or await self._authenticate()
        try:
            return await self._post(method, question, decode, self._token)
        except _TokenExpired:  # nothing was done
            self._token = await self._authenticate()
            return await self._post(method, question, decode, self._token)

    async def _authenticate(self) -> str:
        return await self._post(
            "auth/authenticate", {"name": self._user, "password": self._password or ""}, _token
        )

    async def _post(
        self, method: str, question: Json, decode: Callable[[Json], T], token: str = ""
    ) -> T:
        """What etcd says. Raises `OutcomeUnknown` for what it cannot have answered to this question."""
        headers = {"Authorization": token} if token else {}
        try:
            response = await self._client.post(f"/v3/{method}", json=question, headers=headers)
            self._reach.reached = True
            answer = response.json()
        except httpx.ConnectError as error:
            raise self._reach.failed(_cause_of(error), f"{self.url}: {error}") from error
        except (httpx.HTTPError, ValueError) as error:
            raise OutcomeUnknown(f"{self.url}: {str(error) or type(error).__name__}") from error
        if response.status_code != 200 or not isinstance(answer, dict):
            raise self._classified(response.status_code, answer)
        try:
            _require(bool(answer["header"]["cluster_id"]), "whose?")
            return decode(answer)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"
            raise OutcomeUnknown(
                f"{self.url}: an answer makes no sense ({said}): {str(answer)[:200]}"
            ) from error

    def _classified(self, status: int, answer: object) -> StoreError:
        """An error of etcd by its gRPC code: [google.golang.org/grpc/codes]."""
        known = answer if isinstance(answer, dict) else {}
        code, said = known.get("code"), str(known.get("error") or f"status {status}")
        advice = next((advice for words, advice in _ADVICE.items() if words in said), "")
        text = f"{self.url}: {said}" + (f" ({advice})" if advice else "")
        if code == _UNAUTHENTICATED:
            return _TokenExpired(text)
        if code in (_DENIED, _INVALID, _PRECONDITION):
            return Refused(text)
        return Refused(text) if code == _RESOURCE_EXHAUSTED and advice else OutcomeUnknown(text)


class _TokenExpired(OutcomeUnknown):
    """etcd did not know the token of a request, and did nothing."""


def _client(place: str, options: StoreOptions) -> httpx.AsyncClient:
    """A client of an endpoint. Raises `Refused` when the files of its certificates are none."""
    authority, certificate, key = (
        os.environ.get(f"ETCDCTL_{name}") for name in ("CACERT", "CERT", "KEY")
    )
    base = options.endpoint or f"{'https' if authority else 'http'}://{place}"
    verify: ssl.SSLContext | bool = True
    try:
        if base.startswith("https:"):
            verify = ssl.create_default_context(cafile=authority)
            if certificate:
                verify.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (authority, certificate, key)))
        raise Refused(f"the certificates in {files} cannot be read: {error}") from error
    return httpx.AsyncClient(base_url=base, timeout=options.timeout_s, verify=verify)


def _cause_of(error: BaseException) -> str:
    """What the system said of a connection that was not made: it stands in the innermost error."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    if isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ConnectionRefusedError):  # event loops have texts of their own
        return "Connection refused"
    return getattr(error, "strerror", None) or str(error)


def _is_version(key: str, version: Version) -> Json:
    """The comparison of a transaction: the object has this version."""
    return {"target": "MOD", "mod_revision": version, "key": _text(key), "result": "EQUAL"}


def _succeeded(answer: Json) -> bool:
    """Whether the comparison of a transaction held."""
    succeeded = answer.get("succeeded", False)
    _require(isinstance(succeeded, bool), "it says neither yes nor no")
    return bool(succeeded)


def _found(key: str, answer: Json) -> Found | None:
    """The object in an answer to a range of one key."""
    kvs = answer.get("kvs", [])
    if not kvs:
        return None
    [kv] = kvs
    _require(kv["key"] == _text(key), "it is about another key")
    return Found(_bytes(kv.get("value", "")), _number(kv["mod_revision"]))


def _text(value: str | bytes) -> str:
    return b64encode(value.encode() if isinstance(value, str) else value).decode()


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)


def _number(text: str) -> str:
    """A number as etcd's JSON has it, from 1 up."""
    _require(text.isdecimal() and text != "0", f"{text!r} is no revision")
    return text


def _revision(answer: Json) -> Version:
    return _number(answer["header"]["revision"])


def _token(answer: Json) -> str:
    text: str = answer["token"]
    _require(isinstance(text, str) and bool(text), "it has no token")
    return text


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
