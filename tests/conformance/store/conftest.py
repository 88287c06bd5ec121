"""Every store behind the same fixtures: `backend` is memory, SQLite and PostgreSQL in turn, `durable` the last two."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.postgres import PostgresServer
from tests.support.stores import StoreBackend

from federation.apiserver.store.interface import Store

POSTGRES = pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.xdist_group("postgres")])


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def _backend(kind: str, request: pytest.FixtureRequest, folder: Path) -> StoreBackend:
    match kind:
        case "memory":
            return StoreBackend(kind)
        case "sqlite":
            return StoreBackend(kind, f"sqlite:///{folder}/state.db")
        case _:
            return StoreBackend(kind, request.getfixturevalue("postgres").create_database())


@pytest_asyncio.fixture(params=["memory", "sqlite", POSTGRES])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreBackend]:
    backend = _backend(request.param, request, tmp_path)
    yield backend
    await backend.close()


@pytest_asyncio.fixture(params=["sqlite", POSTGRES])
async def durable(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreBackend]:
    backend = _backend(request.param, request, tmp_path)
    yield backend
    await backend.close()


@pytest_asyncio.fixture
async def shared(postgres: PostgresServer) -> AsyncIterator[StoreBackend]:
    """A database that several stores share."""
    backend = StoreBackend("postgres", postgres.create_database())
    yield backend
    await backend.close()


@pytest_asyncio.fixture
async def store(backend: StoreBackend) -> Store:
    return await backend.open()


@pytest.fixture
def database_url(durable: StoreBackend) -> str:
    return durable.url
