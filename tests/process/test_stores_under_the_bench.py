"""Runs on real stores: they are valid under faults, count requests, and leave no process behind."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

import bench.commands.test
from bench.stores import proxy
from tests import servers
from tests.lawful import Overheard
from tests.programs import ROOT


def run_test(
    folder: Path, *arguments: str, node: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [
        str(ROOT / "maelstrom"), "test", "-w", "kafka", "--bin", str(ROOT / "run.sh"),
        "--node-count", "3", "--concurrency", "2n", "--rate", "60", "--time-limit", "3",
        "--recovery-time", "1", "--strict", "--no-pictures", "--store", str(folder), *arguments, "--", *node,
    ]  # fmt: skip
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def latest(folder: Path) -> Path:
    return (folder / "kafka" / "latest").resolve()


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((latest(folder) / "results.json").read_text())
    return found


def left_behind(folder: Path) -> list[str]:
    """Processes of a run that still live: nodes and servers know its folder."""
    found = []
    for each in psutil.process_iter(["cmdline"]):
        line = " ".join(each.info["cmdline"] or ())
        if str(folder) in line or ("moto_server" in line and each.ppid() == 1):
            found.append(line)
    return found


FAULTS = ("--nemesis", "kill,store", "--nemesis-interval", "0.5", "--seed", "7")


@pytest.mark.slow
@pytest.mark.parametrize("server", ["etcd", "sqlite"])  # moto is that of the next tests
def test_a_run_under_store_faults_and_kills(tmp_path: Path, server: str) -> None:
    done = run_test(tmp_path, "--store-server", server, *FAULTS)
    assert done.returncode == 0, done.stdout + done.stderr
    found = results(tmp_path)
    assert (found["valid?"], found["store"]["server"]) == (True, server)
    texts = [each["text"] for each in found["faults"] if each["fault"] == "store"]
    assert texts
    assert all(text.startswith(server) for text in texts)
    if server != "sqlite":
        assert found["store"]["request-count"] == sum(found["store"]["by-kind"].values()) > 0
        assert "store requests an operation" in done.stdout
    assert left_behind(tmp_path) == []
    assert not (latest(tmp_path) / "store").exists()  # etcd's data


def test_every_change_behind_the_proxy_is_lawful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "Connection", Overheard)
    arguments = (
        "-w kafka --node-count 3 --concurrency 2n --rate 60 --time-limit 3 --strict --no-pictures"
    )
    places = ["--bin", str(ROOT / "run.sh"), "--store", str(tmp_path), "--store-server", "moto"]
    with pytest.raises(SystemExit) as ended:
        bench.commands.test.test.main([*arguments.split(), *places, *FAULTS])
    assert ended.value.code == 0
    assert Overheard.changes
    assert Overheard.observer.broken is None


def test_a_server_that_is_there_is_used_and_secrets_stay_secret(
    endpoint: str, tmp_path: Path
) -> None:
    url = f"s3://{servers.BUCKET}/tests"
    surroundings: dict[str, Any] = {**servers.environment_of(endpoint)}
    done = run_test(tmp_path, "--store-server", url, *FAULTS, **surroundings)
    assert done.returncode == 0, done.stdout + done.stderr
    store = results(tmp_path)["store"]
    assert store["url"] == f"s3://{servers.BUCKET}/tests/{latest(tmp_path).name}"
    assert store["request-count"] > 0
    written = done.stdout.encode() + done.stderr.encode()
    for file in latest(tmp_path).rglob("*"):
        written += file.read_bytes() if file.is_file() else b""
    assert surroundings["AWS_SECRET_ACCESS_KEY"].encode() not in written


@pytest.mark.slow
def test_a_node_alone_on_a_store_needs_nothing_of_the_bench(tmp_path: Path) -> None:
    done = run_test(tmp_path, node=("--store", f"sqlite:///{tmp_path}/log.db"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "store" not in results(tmp_path)


def test_a_store_that_is_missing_is_said_in_the_answer_to_init(
    endpoint: str, tmp_path: Path
) -> None:
    done = run_test(
        tmp_path, node=("--store", "s3://nowhere/a"), **servers.environment_of(endpoint)
    )
    assert done.returncode == 255
    assert "the bucket does not exist; make it first" in done.stdout
    logs = "".join(file.read_text() for file in (latest(tmp_path) / "node-logs").glob("*.log"))
    assert logs.count("ERROR the store cannot be used") == len(logs.splitlines())
