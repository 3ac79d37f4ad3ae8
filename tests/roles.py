"""The policies of docs/log/permissions.md on a server that enforces them, with a key for each role."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from leaderless.store.options import StoreOptions
from tests import servers

URL = f"s3://{servers.BUCKET}/orders"  # the log that they are about
PAGE = Path(__file__).parent.parent / "docs" / "log" / "permissions.md"
POLICY = re.compile(r"```json\n(.*?)```", re.DOTALL)  # the reader's
ACTIONS = re.compile(r"^- (\w+): `(\[.*?\])`", re.MULTILINE)  # of the others, on its objects
ENFORCE = "/moto-api/reset-auth"  # from now on every request but so many needs a right


def policies() -> dict[str, Any]:
    """Those of the page, as moto takes them: no conditions, and a deletion of many needs the bucket, too."""
    page, found = PAGE.read_text(), {}
    [text] = POLICY.findall(page)
    for role, actions in [("Reader", ""), *ACTIONS.findall(page)]:
        policy = json.loads(text.replace("my-bucket", servers.BUCKET))
        if actions:
            policy["Statement"][0]["Action"] = json.loads(actions)
        for statement in policy["Statement"]:
            statement.pop("Condition", None)
            if "s3:DeleteObject" in statement["Action"]:
                whole = statement["Resource"].partition("/")[0]
                statement["Resource"] = [statement["Resource"], whole]
        found[role.lower()] = policy
    return found


@contextmanager
def roles() -> Iterator[dict[str, StoreOptions]]:
    """moto's server while a block runs; gives how each role reaches the log at `URL`, which is not made yet."""
    import boto3  # half a second, which every process of the tests would take

    with servers.moto() as endpoint:
        usual = servers.s3_options(endpoint)
        iam = boto3.client(
            "iam",
            endpoint_url=endpoint,
            region_name=usual.region,
            aws_access_key_id="root",
            aws_secret_access_key="root",
        )
        found = {}
        for role, policy in policies().items():
            iam.create_user(UserName=role)
            iam.put_user_policy(UserName=role, PolicyName=role, PolicyDocument=json.dumps(policy))
            key = iam.create_access_key(UserName=role)["AccessKey"]
            found[role] = replace(
                usual, access_key=key["AccessKeyId"], secret_key=key["SecretAccessKey"]
            )
        urlopen(Request(endpoint + ENFORCE, b"0", {"Content-Type": "text/plain"})).close()
        yield found
