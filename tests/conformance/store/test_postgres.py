"""PostgreSQL: errors name the database and the remedy, and never the password."""

from datetime import UTC, datetime

import pytest
from tests.support.postgres import PostgresServer

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.sql import SQLStore

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]


async def refused(url: str) -> str:
    store = SQLStore(url)
    with pytest.raises((ConfigurationError, StoreUnavailable)) as caught:
        await store.ready()
    await store.close()
    assert "\n" not in str(caught.value)
    return f"{type(caught.value).__name__}: {caught.value}"


async def test_a_database_that_does_not_exist_is_named(postgres: PostgresServer) -> None:
    message = await refused(postgres.url("missing"))
    assert message.startswith(f"ConfigurationError: database missing on {postgres.folder}: ")
    assert message.endswith("create it, or correct the store url")


async def test_an_error_names_the_missing_database_permission(postgres: PostgresServer) -> None:
    postgres.execute("CREATE ROLE weak LOGIN PASSWORD 'secret-word'")
    url = postgres.create_database().replace("postgres@", "weak:secret-word@")
    message = await refused(url)
    assert message.startswith("ConfigurationError")
    assert "permission denied for schema public; let the user of the store url create tables" in message
    assert "secret-word" not in message


async def test_the_time_is_that_of_the_server(postgres: PostgresServer) -> None:
    store = SQLStore(postgres.create_database())
    await store.ready()
    before = datetime.now(UTC)
    found = await store.database.now()
    assert before <= found <= datetime.now(UTC)
    await store.close()


async def test_a_server_that_does_not_run_may_be_tried_again(postgres: PostgresServer) -> None:
    message = await refused("postgresql://someone:secret-word@/name?host=/nowhere")
    assert message.startswith("StoreUnavailable: database name on /nowhere: ")
    assert message.endswith("check that the server runs and is reachable")
    assert "secret-word" not in message


async def test_opening_twice_is_one_opening(postgres: PostgresServer) -> None:
    store = SQLStore(postgres.create_database())
    await store.ready()
    await store.ready()
    await store.database.open()
    assert await store.revision() == 0
    await store.close()
    await store.close()
