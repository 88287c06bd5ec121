"""The quickstart and the manifests of document 003 on two `fedctl serve` with one PostgreSQL.

The tests talk to the process that does not run the controllers, so every write and every watch crosses the database.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.test_existing_host import test_the_quickstart_runs  # noqa: F401  # collected here, with the fixture `serve` below
from tests.e2e.test_replicas import is_leader
from tests.e2e.test_seeds_003 import (  # noqa: F401  # the same
    Serve,
    fed,
    provide,
    serve_alone,
    test_every_selector_of_the_printed_policy_excludes_a_cluster,
    test_scaling_from_30_to_15_turns_15_15_0_into_8_7_0,
    test_the_printed_override_changes_the_image_in_the_intersection_only,
    test_the_printed_policy_places_the_deployment_in_one_of_its_clusters,
    test_weights_40_30_40_divide_the_replicas,
)
from tests.support.federation import Federation, eventually, start_serve
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.postgres, pytest.mark.xdist_group("onreplicas")]


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
        with (
            closing(start_serve(directory / "leader", FEDERATION_STORE_URL=url)) as leader,
            closing(start_serve(directory / "follower", FEDERATION_STORE_URL=url)) as follower,
        ):
            eventually(lambda: is_leader(leader), bool, what="the first process leads")
            assert not is_leader(follower)
            yield follower

    return replicas
