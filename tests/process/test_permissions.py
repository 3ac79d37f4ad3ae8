"""The policies of docs/permissions.md on a server that enforces them: what each role may do, and no more."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest

from tests import servers

pytestmark = pytest.mark.process

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"
POLICY = re.compile(r"^(\w+):\n\n```json\n(.*?)```", re.DOTALL | re.MULTILINE)
ENFORCE = "/moto-api/reset-auth"  # from now on every request but so many needs a right

Environments = dict[str, dict[str, str]]


def policies() -> dict[str, Any]:
    """Those of the page, as moto takes them: no conditions, and a deletion of many needs the bucket, too."""
    found = {}
    for role, text in POLICY.findall(PAGE.read_text()):
        policy = json.loads(text.replace("my-bucket", servers.BUCKET))
        for statement in policy["Statement"]:
            statement.pop("Condition", None)
            if "s3:DeleteObject" in statement["Action"]:
                whole = statement["Resource"].partition("/")[0]
                statement["Resource"] = [statement["Resource"], whole]
        found[role.lower()] = policy
    return found


@pytest.fixture(scope="module")
def roles() -> Iterator[Environments]:
    """The environment of a process in each role."""
    with servers.moto() as endpoint:
        as_root = servers.environment_of(endpoint)
        iam = boto3.client(
            "iam",
            endpoint_url=endpoint,
            region_name=as_root["AWS_REGION"],
            aws_access_key_id="root",
            aws_secret_access_key="root",
        )
        found = {}
        for role, policy in policies().items():
            iam.create_user(UserName=role)
            iam.put_user_policy(UserName=role, PolicyName=role, PolicyDocument=json.dumps(policy))
            key = iam.create_access_key(UserName=role)["AccessKey"]
            found[role] = os.environ | as_root
            found[role] |= {
                "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
                "LEADERLESS_STORE": f"s3://{servers.BUCKET}/orders",
            }
        urlopen(Request(endpoint + ENFORCE, b"0", {"Content-Type": "text/plain"})).close()
        yield found


def test_each_role_may_do_its_own(roles: Environments) -> None:
    def run(role: str, *words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "leaderless.cli", *words]
        done = subprocess.run(
            command, env=roles[role], capture_output=True, text=True, check=False, timeout=300
        )
        return done.returncode, done.stdout + done.stderr

    status, said = run("writer", "init")
    assert (status, "what it may do in the bucket" in said) == (1, True), said
    assert run("operator", "init")[0] == 0
    assert run("writer", "produce", "eu", json.dumps("x" * 20_000))[0] == 0
    for words in (["read", "eu"], ["status"], ["fsck"]):
        status, said = run("reader", *words)
        assert status == 0, said
    status, said = run("reader", "--patience", "1", "produce", "eu", "1")
    assert (status, "what it may do in the bucket" in said) == (1, True), said
    status, said = run("reader", "ack", "eu", "0", "--group", "g", "--patience", "1")
    assert status == 1, said
    assert run("writer", "ack", "eu", "0", "--group", "g")[0] == 0
    assert run("operator", "vacuum")[0] == 0
