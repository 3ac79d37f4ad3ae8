"""Every store, in memory, in a file, and behind real servers."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from leaderless.store.port import Store
from tests import servers
from tests.servers import Place


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with servers.moto(switch_s=1e-6) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.etcd(tmp_path_factory.mktemp("etcd")) as address:
        yield address


@pytest.fixture(
    params=[
        "memory",
        "sqlite",
        pytest.param("s3", marks=pytest.mark.process),
        pytest.param("etcd", marks=[pytest.mark.process, pytest.mark.slow]),  # it must be installed
        pytest.param("ceph", marks=[pytest.mark.process, pytest.mark.stores]),
        pytest.param("azurite", marks=[pytest.mark.process, pytest.mark.stores]),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    name = "".join(char for char in request.node.name if char.isalnum())
    match request.param:
        case "memory":
            return Place(f"memory:{name}")
        case "sqlite":
            return Place(f"sqlite:///{tmp_path}/store.db")
        case "s3" | "ceph" as server:
            endpoint = request.getfixturevalue("moto" if server == "s3" else server)
            return Place(f"s3://{servers.BUCKET}/{name}", endpoint)
        case "azurite":
            return Place(f"az://{servers.BUCKET}/{name}", request.getfixturevalue("azurite"))
        case _:
            return Place(f"etcd://{request.getfixturevalue('etcd')}/{name}")


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = place.open()
    yield store
    await store.aclose()
