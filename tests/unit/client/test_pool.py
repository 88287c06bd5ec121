"""Clients that follow their cluster's endpoint and credentials."""

import asyncio
import base64
from typing import Any

import pytest

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.client.pool import ClusterPool


class Recorded:
    """A transport that returns its connection's token."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_closed = False

    async def raw(self, *arguments: Any) -> tuple[int, bytes]:
        return 200, self.connection.token.encode()

    async def close(self) -> None:
        self.is_closed = True


def a_cluster(name: str = "m1", **spec: Any) -> dict[str, Any]:
    wanted = {"apiEndpoint": f"https://{name}", "insecure": True, "secretRef": {"name": name}, **spec}
    return {"kind": "FederatedCluster", "metadata": {"name": name}, "spec": wanted}


def a_secret(token: str = "t1") -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": "m1"}, "data": {"bootstrap-token-data": _b64(token)}}


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def made() -> list[Recorded]:
    return []


@pytest.fixture
def pool(made, clock) -> ClusterPool:
    def connect(connection: Connection) -> Any:
        made.append(Recorded(connection))
        return made[-1]

    return ClusterPool(connect=connect, clock=clock)


async def test_an_unchanged_connection_keeps_the_client(pool, made) -> None:
    assert pool.update(a_cluster(), a_secret()) is True
    assert pool.update({**a_cluster(), "status": {"any": 1}}, a_secret()) is False
    assert pool.clusters == ["m1"]
    assert len(made) == 1
    assert await pool.client("m1").raw("GET", "/") == (200, b"t1")


@pytest.mark.parametrize(
    ("cluster", "secret"),
    [
        (a_cluster(apiEndpoint="https://elsewhere"), a_secret()),
        (a_cluster(), a_secret("t2")),
    ],
    ids=["endpoint", "a token inside the Secret"],
)
async def test_a_changed_connection_replaces_the_transport_below_the_same_client(pool, made, cluster, secret) -> None:
    names: list[str] = []
    pool.add_listener(names.append)
    pool.update(a_cluster(), a_secret())
    client = pool.client("m1")
    assert names == []
    assert pool.update(cluster, secret) is True
    assert pool.client("m1") is client
    assert names == ["m1"]
    assert await client.raw("GET", "/") == (200, made[1].connection.token.encode())
    running = asyncio.ensure_future(pool.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [inner.is_closed for inner in made] == [True, False]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [inner.is_closed for inner in made] == [True, True]


async def test_unusable_data_keeps_the_old_client_and_reports_the_problem(pool, made) -> None:
    pool.update(a_cluster(), a_secret())
    with pytest.raises(ConfigurationError):
        pool.update(a_cluster(), {**a_secret(), "data": {}})
    assert "client-certificate-data" in pool.problem("m1")
    assert await pool.client("m1").raw("GET", "/") == (200, b"t1")
    pool.update(a_cluster(), a_secret())
    assert pool.problem("m1") == ""
    assert len(made) == 1


async def test_a_missing_secret_is_named(pool) -> None:
    with pytest.raises(ConfigurationError, match='Secret "m1" does not exist'):
        pool.update(a_cluster(), None)
    with pytest.raises(NotFound, match='Secret "m1" does not exist'):
        pool.client("m1")


async def test_a_removed_cluster_has_no_client(pool, made) -> None:
    pool.update(a_cluster(), a_secret())
    pool.remove("m1")
    pool.remove("m1")
    with pytest.raises(NotFound, match='cluster "m1" has no client'):
        pool.client("m1")
    await pool.close()
    assert made[0].is_closed


async def test_listeners_can_be_removed(pool) -> None:
    names: list[str] = []
    end = pool.add_listener(names.append)
    end()
    end()
    pool.update(a_cluster(), a_secret())
    pool.update(a_cluster(), a_secret("t2"))
    assert names == []
