"""The real store of one run, as the bench sees it: what nodes are told, its fault, its figures.

The store is the one that `--store-server` names (`bench.stores.names`): it is started, or it is there already.
Each run gets a prefix of its own. Nodes are told `--store URL`; endpoints and keys are in their environment.

The fault `store` on SQLite, where no proxy can stand: another process holds the file's write lock, again and
again. The bench is that process. It holds the lock for 10 to 300 ms (`late`) or 1.2 to 3 s (`abandoned`), and
lets it go for as long as it held it before. Writes of all nodes wait meanwhile; reads do not.
"""

import http.client
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from bench.failure import RunFailure, indent
from bench.loop import Loop, RealLoop
from bench.nemesis.fault import Fault
from bench.nemesis.requests import WAITS_NS, Requests, StoreFault
from bench.processes import Own
from bench.stores.fates import MODES_OF_PROXY, Answer, Fates, Ways, busy
from bench.stores.names import ETCD, MOTO, SQLITE
from bench.stores.proxy import Proxy, RequestStatistics
from bench.system import die_with_parent, end
from bench.verdict.checkers import single
from runs.files import end_of
from runs.history import Keyword, keywords

BUCKET = "bench"
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_ETCD_PORT = 2379
_TLS_OF_ETCD = "ETCDCTL_CACERT"  # etcd's clients use TLS when it is set
_OF_OTHER_ETCD = ("ETCDCTL_USER", "ETCDCTL_PASSWORD", _TLS_OF_ETCD)  # ours has neither
_START_LIMIT_S = 30.0
_LOOK_S = 0.02
_GRACE_S = 2.0
_MOTO = Path(__file__).with_name("moto_server.py")
_MOTO_READY = re.compile(r"Running on http://127.0.0.1:(\d+)")
_ETCD_READY = re.compile(r"serving client traffic|ready to serve client requests")
_KEYS_OF_MOTO = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_REGION": "us-east-1",
}
_SIGNED = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/s3/aws4_request, SignedHeaders=host"
SLOW_DOWN = busy(
    "application/xml",
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
)
UNAVAILABLE = busy(
    "application/json",
    b'{"error":"etcdserver: too many requests","code":14,"message":"etcdserver: too many requests"}',
)


@dataclass(frozen=True)
class StoreServer:
    """A store for the nodes of a run.

    `name`: for people. `address`: of its server, None where a proxy cannot stand before it. `url`: gives what
    nodes are told, for an address of the proxy ("" without one). `environment`: what nodes find in theirs.
    `file`: of SQLite.
    """

    name: str
    url: Callable[[str], str]
    address: tuple[str, int] | None = None
    throttled: Answer = SLOW_DOWN
    environment: Callable[[str], Mapping[str, str]] = field(default=lambda _address: {})
    file: Path | None = None


@contextmanager
def store_server(
    name: str, run_dir: Path, environment: Mapping[str, str] = os.environ
) -> Iterator[StoreServer]:
    """The store that `--store-server` names, for as long as this lasts; a server that it started ends then.

    `run_dir`: the folder of the run; its name is the prefix. Raises `RunFailure` when a server does not start.
    """
    prefix = re.sub(r"[^\w.-]", "-", run_dir.name)
    if name == MOTO:
        with _moto(run_dir) as port:
            yield _s3(MOTO, ("127.0.0.1", port), f"{BUCKET}/{prefix}", _KEYS_OF_MOTO)
    elif name == ETCD:
        with _etcd(run_dir) as port:
            server = _of_etcd(("127.0.0.1", port), prefix)
            yield replace(server, environment=lambda _: dict.fromkeys(_OF_OTHER_ETCD, ""))
    elif name == SQLITE:
        file = run_dir.absolute() / "store.db"
        yield StoreServer(SQLITE, lambda _: f"sqlite:///{file}", file=file)
    else:
        yield _present(name, prefix, environment)


def _present(url: str, prefix: str, environment: Mapping[str, str]) -> StoreServer:
    parts = urlsplit(url)
    place = "/".join(filter(None, (parts.netloc, parts.path.strip("/"), prefix)))
    if parts.scheme == "etcd" and not environment.get(_TLS_OF_ETCD):
        return _of_etcd((parts.hostname or "", parts.port or _ETCD_PORT), place.partition("/")[2])
    endpoints = (environment[name] for name in ENDPOINTS if environment.get(name))
    endpoint = urlsplit(next(endpoints, ""))
    if parts.scheme == "s3" and endpoint.scheme == "http":
        return _s3(endpoint.netloc, (endpoint.hostname or "", endpoint.port or 80), place, {})
    return StoreServer(parts.scheme, lambda _: f"{parts.scheme}://{place}")


def _s3(name: str, address: tuple[str, int], place: str, keys: Mapping[str, str]) -> StoreServer:
    return StoreServer(
        name,
        lambda _: f"s3://{place}",
        address,
        SLOW_DOWN,
        lambda proxy: {**keys, **dict.fromkeys(ENDPOINTS, f"http://{proxy}")},
    )


def _of_etcd(address: tuple[str, int], prefix: str) -> StoreServer:
    return StoreServer(ETCD, lambda proxy: f"etcd://{proxy}/{prefix}", address, UNAVAILABLE)


@contextmanager
def _moto(run_dir: Path) -> Iterator[int]:
    command = [sys.executable, "-P", str(_MOTO), "-p", "0"]
    with _started(command, run_dir / "store.log", _MOTO_READY) as ready:
        port = int(ready[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_LIMIT_S)
        connection.request("PUT", f"/{BUCKET}", headers={"Authorization": _SIGNED})
        connection.getresponse().read()
        connection.close()
        yield port


@contextmanager
def _etcd(run_dir: Path) -> Iterator[int]:
    data, port = run_dir / "store", _free_port()
    here, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{_free_port()}"
    command = [
        "etcd", "--name", "n", "--data-dir", str(data), "--logger", "zap",
        "--listen-client-urls", here, "--advertise-client-urls", here,
        "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
        "--initial-cluster", f"n={peers}",
    ]  # fmt: skip
    try:
        with _started(command, run_dir / "store.log", _ETCD_READY):
            yield port
    finally:
        shutil.rmtree(data, ignore_errors=True)  # its files are allocated ahead: 128 MiB


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _started(command: Sequence[str], log: Path, ready: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Run a server until the block ends; gives the match of `ready` in what it wrote into `log`."""
    with log.open("wb") as file:
        try:
            server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the bench, which still needs the server
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - the bench has one thread
            )
        except OSError as error:
            raise RunFailure(
                f"The store {command[0]} cannot be started: {error.strerror}."
            ) from None
    try:
        yield _first_match(server, log, ready)
    finally:
        try:
            end(server, signal.SIGTERM, signal.SIGKILL, grace_s=_GRACE_S)
        except KeyboardInterrupt:  # a person has no patience
            end(server, signal.SIGKILL, grace_s=_GRACE_S)


def _first_match(
    server: "subprocess.Popen[bytes]", log: Path, ready: re.Pattern[str]
) -> re.Match[str]:
    until = time.monotonic() + _START_LIMIT_S
    while server.poll() is None and time.monotonic() < until:
        if found := ready.search(log.read_text(errors="replace")):
            return found
        time.sleep(_LOOK_S)
    written = indent(end_of(log, 2000))
    raise RunFailure(f"The store did not start. The end of what it wrote into {log}:\n{written}")


# ---------------------------------------------------------------- a file as store


MODES_OF_FILE = dict.fromkeys(WAITS_NS, (1.0,))  # a lock is for all requests that write
_RETRY_NS = 2_000_000


@dataclass
class FileLock:
    """Holds the write lock of a SQLite file while a fault is in force."""

    loop: Loop
    file: Path
    random: Random
    _fault: StoreFault | None = None
    _connection: sqlite3.Connection | None = None
    holding: bool = False

    def impose(self, fault: StoreFault | None) -> None:
        """Take the lock or let it go (an `Impose`)."""
        self._fault = fault
        if fault:
            self._take(fault)
        else:
            self.close()

    def close(self) -> None:
        """Let the file go."""
        if self._connection:
            self._connection.close()
        self._connection, self.holding = None, False

    def _take(self, fault: StoreFault) -> None:
        if self._fault is not fault:
            return
        try:
            self._connected().execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:  # a node writes just now
            self.loop.call_later(_RETRY_NS, self._take, fault)
            return
        self.holding = True
        wait_ns = self.random.randint(*WAITS_NS[fault.mode])
        self.loop.call_later(wait_ns, self._release, fault, wait_ns)

    def _release(self, fault: StoreFault, wait_ns: int) -> None:
        if self._fault is fault:
            with suppress(sqlite3.OperationalError):
                self._connected().execute("ROLLBACK")
            self.holding = False
            self.loop.call_later(wait_ns, self._take, fault)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self.file, timeout=0, isolation_level=None)
        return self._connection


# ---------------------------------------------------------------- the store of a run


class RunStore:
    """`server` for the nodes of a run, with a proxy before it where it has an address."""

    def __init__(
        self, server: StoreServer, loop: RealLoop, nodes: Sequence[str], random: Random
    ) -> None:
        self._server = server
        self._random = random
        address, file = server.address, server.file
        self._proxy = Proxy(loop, nodes, address, server.throttled) if address else None
        self._lock = FileLock(loop, file, random) if file else None

    def own(self, node: str) -> Own:
        """What a node is told: the URL, and in its environment endpoint and keys."""
        address = self._address(node)
        return Own(["--store", self._server.url(address)], self._server.environment(address))

    def _address(self, node: str) -> str:
        return f"127.0.0.1:{self._proxy.port(node)}" if self._proxy else ""

    def connect(self, network: Ways, is_starting: Callable[[str], bool]) -> None:
        """Let latency and link faults of the network act on the way to the store, too."""
        if self._proxy:
            self._proxy.connect(Fates(network, self._random), is_starting)

    def fault(self, nodes: Sequence[str], targets: str) -> Fault:
        """The fault `store` for some of `nodes`, which may change.

        Raises `RunFailure` where nothing can stand between nodes and store.
        """
        name = self._server.name
        if self._proxy:
            return Requests(self._proxy.impose, nodes, targets, MODES_OF_PROXY, name)
        if self._lock:  # a lock is for all
            return Requests(self._lock.impose, nodes, "all", MODES_OF_FILE, name)
        raise RunFailure(
            f"--nemesis store: the bench's proxy speaks HTTP without TLS, and cannot stand before {name}."
            " Leave the fault out, or use a server with an http endpoint, such as --store-server moto."
        )

    def begin(self) -> None:
        """The main phase begins: requests count from now on."""
        if self._proxy:
            self._proxy.begin()

    def result(self, operations: int) -> dict[Keyword, Any]:
        """For results.edn; where no proxy stands before the store there are no figures."""
        described = keywords(
            valid=True, server=self._server.name, url=self._server.url("HOST:PORT")
        )
        return described | (_figures(self._proxy.statistics, operations) if self._proxy else {})

    def close(self) -> None:
        """Let go of ports and files."""
        for each in (self._proxy, self._lock):
            if each:
                each.close()


def _figures(counted: RequestStatistics, operations: int) -> dict[Keyword, Any]:
    count = counted.by_kind.total()
    figures = keywords(
        request_count=count,
        requests_per_op=single(count / operations) if operations else None,
        at_start=counted.at_start,
        by_kind=dict(counted.by_kind.most_common()),
        by_status=dict(counted.by_status.most_common()),
        by_fault=dict(counted.by_fault.most_common()),
        sent_bytes=counted.sent_bytes,
        received_bytes=counted.received_bytes,
    )
    return {name: value for name, value in figures.items() if value is not None}
