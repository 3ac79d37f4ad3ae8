"""Servers of real stores for tests, each a process of its own on a free port of this machine."""

import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.request import Request, urlopen

from leaderless.store.options import StoreOptions

BUCKET = "logs"
READY = re.compile(r"serving client traffic|ready to serve client requests")
MOTO_URL = re.compile(r"http://127\.0\.0\.1:\d+")
SIGNED = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host"


def of_moto(endpoint: str) -> StoreOptions:
    """How to reach moto's server, which takes any key."""
    return StoreOptions(endpoint, "test", "secret-of-the-test", "us-east-1", timeout_s=10)


@contextmanager
def moto() -> Iterator[str]:
    """moto's server with an empty bucket `BUCKET`; gives its endpoint."""
    with _started([sys.executable, "-m", "moto.server", "-p", "0"], MOTO_URL) as endpoint:
        make_bucket(endpoint)
        yield endpoint


def make_bucket(endpoint: str) -> None:
    """Make `BUCKET`; what it held is gone."""
    urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
    made = Request(f"{endpoint}/{BUCKET}", method="PUT", headers={"Authorization": SIGNED})
    urlopen(made).close()


@contextmanager
def etcd(folder: Path) -> Iterator[str]:
    """An etcd of one member that keeps its data in `folder`; gives HOST:PORT."""
    if shutil.which("etcd") is None:
        raise FileNotFoundError(
            "the command etcd is missing: on Debian, apt-get install etcd-server"
        )
    address, peers = (f"127.0.0.1:{free_port()}" for _ in range(2))
    command = [
        "etcd", "--name", "n", "--data-dir", str(folder), "--logger", "zap",
        "--listen-client-urls", f"http://{address}", "--advertise-client-urls", f"http://{address}",
        "--listen-peer-urls", f"http://{peers}", "--initial-advertise-peer-urls", f"http://{peers}",
        "--initial-cluster", f"n=http://{peers}",
    ]  # fmt: skip
    with _started(command, READY):
        yield address


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _started(command: list[str], ready: re.Pattern[str]) -> Iterator[str]:
    """Run a server until the block ends; gives what matched `ready` in what it wrote."""
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stderr is not None
        said: list[str] = []
        try:
            yield _first_match(server.stderr, ready, said)
        finally:
            server.kill()
    assert server.returncode < 0, f"{command[0]} ended by itself: {''.join(said)}"


def _first_match(lines: IO[str], ready: re.Pattern[str], said: list[str]) -> str:
    for line in lines:
        said.append(line)
        if found := ready.search(line):
            threading.Thread(target=_drain, args=[lines], daemon=True).start()
            return found[0]
    raise AssertionError(f"the server never was ready: {''.join(said)}")


def _drain(lines: IO[str]) -> None:
    """Read on, or the server stops when the pipe is full."""
    try:
        for _ in lines:
            pass
    except ValueError:
        pass  # it was closed
