"""The policies of docs/log/permissions.md: what each role may do, and no more."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests import roles, servers

pytestmark = pytest.mark.process

Environments = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def environments() -> Iterator[Environments]:
    """That of a process in each role."""
    place = {"LEADERLESS_STORE": roles.URL}
    with roles.roles() as found:
        yield {
            role: os.environ | place | servers.variables_of(options)
            for role, options in found.items()
        }


def test_each_role_may_do_its_own(environments: Environments) -> None:
    def run(role: str, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "leaderless.cli", *words]
        done = subprocess.run(
            command,
            env=environments[role],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    status, said = run("writer", "init")
    assert (status, "what it may do in the bucket" in said) == (1, True), said
    assert run("operator", "init")[0] == 0
    assert run("writer", "produce", "eu", json.dumps("x" * 20_000))[0] == 0
    tail = ["tail", "eu", "--offset", "earliest", "--count", "1"]
    for words in (["read", "eu"], tail, ["status"], ["fsck"]):
        status, said = run("reader", *words)
        assert status == 0, said
    status, said = run("reader", "produce", "eu", "1")
    assert (status, "what it may do in the bucket" in said) == (1, True), said
    status, said = run("reader", "ack", "eu", "0", "--group", "g")
    assert status == 1, said
    assert run("writer", "ack", "eu", "0", "--group", "g")[0] == 0
    assert run("operator", "vacuum")[0] == 0
