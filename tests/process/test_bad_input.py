"""What goes wrong between a user and a store: each has a clear error, and none shows a secret."""

import logging
import os
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from leaderless import open_log
from leaderless.cli import main
from leaderless.errors import Definite, LogError, Unfit
from tests import servers
from tests.proxy import Fate, proxy

pytestmark = pytest.mark.anyio
SECRET = "secret-of-the-test"
URL = f"s3://{servers.BUCKET}/log"
Given = dict[str, Any]


def given(endpoint: str, **changed: Any) -> Given:
    """How to reach an S3 server of the tests, for `open_log`."""
    reached = {
        "endpoint": endpoint,
        "access_key": "test",
        "secret_key": SECRET,
        "region": "us-east-1",
    }
    short = {"patience_s": 2.0, "store_timeout_s": 1.0}
    return reached | short | changed


async def opened(url: str, options: Given) -> None:
    async with open_log(url, **options):
        pass


# ---------------------------------------------------------------- wrong reach


@pytest.mark.stores
@pytest.mark.parametrize("wrong", [{"secret_key": "wrong"}, {"access_key": "nobody"}])
async def test_wrong_credentials(ceph: str, wrong: Given) -> None:
    with pytest.raises(Definite, match="Check the access key, its secret") as refused:
        await opened(URL, given(ceph, **wrong))
    assert "wrong" not in str(refused.value)


# ---------------------------------------------------------------- stores that are none


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
async def test_who_may_not_write_the_file_of_a_log_in_use_learns_so_at_once() -> None:
    with TemporaryDirectory() as folder:
        await anyio.Path(folder).chmod(0o755)
        url = f"sqlite:///{folder}/log.db"
        async with open_log(url, peers=None) as log, open_log(url, peers=None) as other:
            await log.append("k", 1)
            os.seteuid(65534)
            try:
                with pytest.raises(Definite, match="readonly database: this user may not"):
                    await other.append("k", 2)
            finally:
                os.seteuid(0)
            assert await log.keys() == {"k": 1}


async def test_a_value_that_no_store_object_can_hold(tmp_path: Path) -> None:
    async with open_log(f"sqlite:///{tmp_path}/log.db") as log:
        log.data._value_bytes = 100_000  # as of a store of small objects
        with pytest.raises(Unfit, match="a value may have 100000 bytes here, not 100003"):
            await log.append("k", "x" * 100_001)
        assert await log.keys() == {}


# ---------------------------------------------------------------- secrets


FATES: list[Fate] = ["ok", 400, 401, 403, 404, 409, 412, 500, 503, "answer lost", "call lost"]


@pytest.mark.parametrize("fate", FATES, ids=str)
async def test_no_error_and_no_log_line_shows_a_secret(
    mock: str, caplog: pytest.LogCaptureFixture, fate: Fate
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    with proxy(mock, lambda *_: fate) as server:
        try:
            async with open_log(
                URL, **given(server.url, patience_s=0.5, store_timeout_s=0.1)
            ) as log:
                await log.append("k", "x" * 20_000)
                said += [repr(log), repr(await log.status()), repr(log._store), repr(vars(log))]
        except LogError as error:
            said += traceback.format_exception(error)
    require_hidden("".join(said) + caplog.text, SECRET)


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        (f"etcd://root:{SECRET}@127.0.0.1:1/log", {}),
        ("etcd://127.0.0.1:1/log", {"ETCDCTL_USER": f"root:{SECRET}"}),
        (f"s3://key:{SECRET}@bucket/log", {}),
        (f"ftp://root:{SECRET}@host/log", {}),
        (f"az://key:{SECRET}@container/log", {}),
    ],
)
@pytest.mark.parametrize("command", [["init"], ["status"], ["fsck"], ["produce", "k", "1"]])
def test_no_command_shows_a_secret(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    environment: dict[str, str],
    command: list[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for more in ([], ["--json"]):
        assert main([*command, "--store", url, "--patience", "0.2", *more]) == 1
    output = capsys.readouterr()
    assert output.err
    require_hidden(output.out + output.err, SECRET)


def test_the_results_of_commands_show_no_secret(
    mock: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ACCESS_KEY_ID", "test"), ("SECRET_ACCESS_KEY", SECRET)):
        monkeypatch.setenv(f"AWS_{name}", value)
    reach = ["--store", URL, "--endpoint", mock, "--region", "us-east-1"]
    for command in (
        ["init"],
        ["produce", "k", "1"],
        ["status"],
        ["fsck"],
        ["groups"],
        ["read", "k"],
    ):
        assert main([*command, *reach]) == 0
    output = capsys.readouterr()
    require_hidden(output.out + output.err, SECRET)


def require_hidden(text: str, secret: str) -> None:
    assert secret not in text
    assert servers.AZURE_KEY not in text
