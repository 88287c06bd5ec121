"""The quickstart on two `fedctl serve` with one PostgreSQL; document 003 is in test_seeds_on_replicas.py.

The tests talk to the process that does not run the controllers, so every write and every watch crosses the database.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.test_existing_host import (  # noqa: F401  # collected here, with the fixture `serve` below
    quickstart,
    test_the_quickstart_runs,
)
from tests.e2e.test_replicas import is_leader
from tests.e2e.test_seeds_003 import Serve, fed, provide  # noqa: F401  # fixtures
from tests.support.federation import Federation, eventually, start_serve
from tests.support.postgres import PostgresServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("two control planes with PostgreSQL"),
    pytest.mark.postgres,
    pytest.mark.xdist_group("onreplicas"),
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="module")
def serve(postgres: PostgresServer) -> Serve:
    """Two control planes on one database; the one that started first leads, the other one is used."""

    @contextmanager
    def replicas(directory: Path) -> Iterator[Federation]:
        directory.mkdir(parents=True)
        url = postgres.create_database()
        with closing(start_serve(directory / "leader", FEDERATION_STORE_URL=url)) as leader:
            eventually(lambda: is_leader(leader), bool, what="the first process leads")
            with closing(start_serve(directory / "follower", FEDERATION_STORE_URL=url)) as follower:
                assert not is_leader(follower)
                yield follower

    return replicas
