"""Servers of real stores for tests, each a process of its own on a free port of this machine."""

import base64
import hashlib
import hmac
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.request import Request, urlopen

from leaderless.store.options import StoreOptions
from leaderless.store.port import Store
from leaderless.store.urls import open_store
from tests import ceph_gateway, programs

free_port = ceph_gateway.free_port

BUCKET = "logs"
ETCD_READY = re.compile(r"serving client traffic|ready to serve client requests")
URL = re.compile(r"http://127\.0\.0\.1:\d+")
ROOT = Path(__file__).parent.parent
# The account that every Azure emulator has [learn.microsoft.com/azure/storage/common/storage-use-azurite].
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
AZURITE = "AZURITE"  # the variable that names its main program


def s3_options(endpoint: str) -> StoreOptions:
    """How to reach an S3 server of the tests: moto's takes any key, Ceph's gateway has a user with this one."""
    return StoreOptions(endpoint, "test", "secret-of-the-test", "us-east-1", timeout_s=10)


def environment_of(endpoint: str) -> dict[str, str]:
    """The same as variables, for a process."""
    return variables_of(s3_options(endpoint))


def variables_of(options: StoreOptions) -> dict[str, str]:
    """How to reach an S3 server as variables, for a process."""
    named = {
        "AWS_ENDPOINT_URL": options.endpoint,
        "AWS_ACCESS_KEY_ID": options.access_key,
        "AWS_SECRET_ACCESS_KEY": options.secret_key,
        "AWS_REGION": options.region,
    }
    return {name: value for name, value in named.items() if value}


def spark_options(options: StoreOptions) -> dict[str, str]:
    """The same as options of the data source of Spark."""
    keys = {"accessKey": options.access_key, "secretKey": options.secret_key}
    named = {"endpoint": options.endpoint, "region": options.region} | keys
    return {name: value for name, value in named.items() if value}


def options_of(url: str, endpoint: str) -> StoreOptions | None:
    """How to reach the store at `url`; its server is at `endpoint`, if the URL does not name it."""
    if not endpoint:
        return None
    return azure_options(endpoint) if url.startswith("az:") else s3_options(endpoint)


class Place(NamedTuple):
    """Where a store is, and how to reach it."""

    url: str
    endpoint: str = ""

    def open(self) -> Store:
        return open_store(self.url, options_of(self.url, self.endpoint))


@contextmanager
def moto(switch_s: float = 0.005) -> Iterator[str]:
    """moto's server with an empty bucket `BUCKET`; gives its endpoint.

    `switch_s`: how long one of its threads runs before another may. A short time makes races more likely.
    """
    program = (
        f"import sys; sys.setswitchinterval({switch_s});"
        "from bench.stores.moto_server import serve; serve(['-p', '0'])"
    )
    with _started([sys.executable, "-c", program], URL) as endpoint:
        make_bucket(endpoint)
        yield endpoint


@contextmanager
def ceph(folder: Path) -> Iterator[str]:
    """Ceph's S3 gateway with an empty bucket `BUCKET`, its files in `folder`; gives its endpoint."""
    program = ROOT / "tests" / "ceph_gateway.py"
    with _started(
        [sys.executable, str(program), str(folder)], URL, ends_with_stdin=True
    ) as endpoint:
        make_bucket(endpoint)
        yield endpoint


def make_bucket(endpoint: str) -> None:
    """Make `BUCKET`; what it held is gone."""
    client = _client(endpoint)
    client.create_bucket(Bucket=BUCKET)
    while found := client.list_objects_v2(Bucket=BUCKET).get("Contents"):
        client.delete_objects(
            Bucket=BUCKET, Delete={"Objects": [{"Key": each["Key"]} for each in found]}
        )


@cache
def _client(endpoint: str) -> Any:
    """A client of an S3 server; to make one takes longer than to use it."""
    import boto3  # half a second, which every process of the tests would take

    options = s3_options(endpoint)
    keys = {
        "aws_access_key_id": options.access_key,
        "aws_secret_access_key": options.secret_key,
    }
    return boto3.client("s3", endpoint_url=endpoint, region_name=options.region, **keys)


def azure_options(endpoint: str) -> StoreOptions:
    """How to reach the account of an Azure emulator."""
    return StoreOptions(f"{endpoint}/{AZURE_ACCOUNT}", AZURE_ACCOUNT, AZURE_KEY, timeout_s=60)


@contextmanager
def azurite(folder: Path) -> Iterator[str]:
    """Azure's emulator with an empty container `BUCKET`, its files in `folder`; gives its endpoint."""
    program = os.environ.get(AZURITE)
    if program is None:
        raise FileNotFoundError(f"{AZURITE} names no program: `make test-stores` installs azurite")
    options = ["--blobPort", "0", "--location", str(folder), "--skipApiVersionCheck", "--silent"]
    with _started(
        [programs.need("node"), program, *options, "--disableTelemetry"], URL
    ) as endpoint:
        _make_container(endpoint)
        yield endpoint


def _make_container(endpoint: str) -> None:
    """[learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key]"""
    path, date, version = f"{AZURE_ACCOUNT}/{BUCKET}", formatdate(usegmt=True), "2021-12-02"
    headers = f"x-ms-date:{date}\nx-ms-version:{version}"
    text = f"PUT{12 * chr(10)}{headers}\n/{AZURE_ACCOUNT}/{path}\nrestype:container"
    digest = hmac.digest(base64.b64decode(AZURE_KEY), text.encode(), hashlib.sha256)
    signed = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
    named = {"x-ms-date": date, "x-ms-version": version, "Authorization": signed}
    urlopen(Request(f"{endpoint}/{path}?restype=container", method="PUT", headers=named)).close()


@contextmanager
def etcd(
    folder: Path, *options: str, address: str | None = None, tls: bool = False
) -> Iterator[str]:
    """An etcd of one member that keeps its data in `folder`; gives HOST:PORT, a free one or `address`.

    `options`: of etcd. `tls`: with a certificate that it makes itself, `folder/fixtures/client/cert.pem`.
    """
    programs.need("etcd")
    address = address or f"127.0.0.1:{free_port()}"
    peers, scheme = f"127.0.0.1:{free_port()}", "https" if tls else "http"
    command = [
        "etcd", "--name", "n", "--data-dir", str(folder), "--logger", "zap",
        "--listen-client-urls", f"{scheme}://{address}", "--advertise-client-urls", f"{scheme}://{address}",
        "--listen-peer-urls", f"http://{peers}", "--initial-advertise-peer-urls", f"http://{peers}",
        "--initial-cluster", f"n=http://{peers}", *(["--auto-tls"] if tls else []), *options,
    ]  # fmt: skip
    with _started(command, ETCD_READY):
        yield address


@contextmanager
def _started(
    command: list[str], ready: re.Pattern[str], *, ends_with_stdin: bool = False
) -> Iterator[str]:
    """Run a server until the block ends; gives what matched `ready` in what it wrote.

    `ends_with_stdin`: it has processes of its own to stop, which it does when its stdin ends.
    """
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        said: list[str] = []
        try:
            yield _first_match(server.stdout, ready, said)
        finally:
            server.stdin.close()
            if not ends_with_stdin:
                server.kill()
    expected = 0 if ends_with_stdin else -signal.SIGKILL
    assert server.returncode == expected, f"{command[0]} ended by itself: {''.join(said)}"


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
