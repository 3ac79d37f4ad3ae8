"""What a node's start does without."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

SHOW = """
import sys
from leaderless.runtime.without_tls import import_anyio
import_anyio()
import leaderless.runtime.main
print("_ssl" in sys.modules, "anyio._backends._asyncio" in sys.modules)
import ssl
print(ssl.SSLContext.__module__)
"""


def test_a_node_starts_without_openssl_and_hides_it_from_nobody() -> None:
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False True", "ssl"]
