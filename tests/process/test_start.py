"""What a node's start does without."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

SHOW = """
import sys
from leaderless.runtime.lean import UNUSED, import_anyio
import_anyio()
import leaderless.runtime.main
strategies = {"cas", "leader", "leaderless", "prefetch", "prefetch_sealed"}
imported = strategies & {each.rpartition(".")[2] for each in sys.modules if ".strategies." in each}
unused = {"_ssl", "_hashlib", "argparse", "pathlib", "shutil", "uuid", *UNUSED} & sys.modules.keys()
print("anyio._backends._asyncio" in sys.modules, unused, imported)
import anyio, anyio.abc, ipaddress, orjson, ssl, typing_extensions, uuid
print(ssl.SSLContext.__module__, typing_extensions.deprecated.__name__)
print(ipaddress.ip_address("::1"), uuid.UUID(int=1))
async def streams():
    sender, receiver = anyio.create_memory_object_stream(1)
    with sender, receiver:
        await sender.send("sent")
        return await receiver.receive()
print(anyio.run(streams))
print("anyio._core._sockets" in sys.modules, anyio.connect_tcp.__name__, "anyio._core._sockets" in sys.modules)
"""
COLLECTS = """
import gc, sys
from leaderless.runtime.lean import import_anyio
import_anyio()
print(gc.isenabled())
from leaderless.runtime.main import main
main([])
print(gc.isenabled())
"""


def said(program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    ).stdout.splitlines()


def test_a_node_starts_without_what_it_does_not_use_and_hides_it_from_nobody() -> None:
    assert said(SHOW) == [
        "True set() set()",
        "ssl deprecated",
        "::1 00000000-0000-0000-0000-000000000001",
        "sent",
        "False connect_tcp True",
    ]


def test_garbage_is_collected_as_soon_as_all_is_imported() -> None:
    assert said(COLLECTS) == ["False", "True"]
