"""How to reach a store: the form of its URL, and what does not stand in it."""

import re
from dataclasses import dataclass, field
from math import inf

import anyio

from leaderless.store.port import OutcomeUnknown, Refused, StoreError

URLS = """\
memory:NAME                 in this process, gone with it
sqlite:///FILE              one file, many processes of one machine (sqlite:////FILE: from the root)
s3://BUCKET/PREFIX          S3, or what speaks like it at an endpoint
gs://BUCKET/PREFIX          Google Cloud Storage
az://CONTAINER/PREFIX       Azure Blob Storage
etcd://HOST:PORT/PREFIX     etcd"""
STARTING_S = 3.0  # so long a server that nobody has reached may be about to start
_NOBODY = re.compile("refused|not known|No address")  # there is no such server now, for certain
_LOGIN = re.compile(r"(?<=://)(?:\S*:\S*|[^/\s]*)@")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options of a store. Those that are `None` come from the environment, where the store's tools look.

    `endpoint`: of an S3-compatible server, such as "http://127.0.0.1:7480". `access_key`, `secret_key`: as
    `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; for Azure the account and its key; for etcd user and
    password. They appear in no `repr`, message or log. `region`: of the bucket. `timeout_s`: how long one
    request may take, in seconds.
    """

    endpoint: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    region: str | None = None
    timeout_s: float = 10.0


@dataclass(slots=True)
class Reach:
    """Whether a server was ever `reached`; until when it may be about to start."""

    reached: bool = False
    until: float = inf

    def failed(self, cause: str, text: str) -> StoreError:
        """The error for a connection that was not made, and the `cause` for which.

        A server that starts beside its programs gets `STARTING_S` seconds. Then an address where nobody is, and
        nobody ever was, counts as wrong: `Refused`.
        """
        self.until = min(self.until, (now := anyio.current_time()) + STARTING_S)
        if self.reached or now < self.until or not _NOBODY.search(cause):
            return OutcomeUnknown(f"{cause}: {text}")
        return Refused(f"{cause}: {text}. Check the address of the server, and whether it runs")


def without_secrets(text: str) -> str:
    """Return a text, such as a URL or an error, in which no URL has a user and a password."""
    return _LOGIN.sub("", text)


def install(extra: str) -> str:
    """How to install the packages of an extra; the project is on no index of packages."""
    return f"pip install '.[{extra}]' in a checkout of leaderless"
