"""PostgreSQL: errors name the database and the remedy, and never the password."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection
from tests.support.postgres import PostgresServer

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.interface import Body
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


@pytest.mark.parametrize("setting", ["default_transaction_read_only = on", "search_path = nowhere"])
async def test_writes_pass_again_once_the_role_may_write(postgres: PostgresServer, setting: str) -> None:
    """Sessions keep the settings of their role, so one that began meanwhile refuses writes as long as it lives."""
    url = postgres.create_database()
    name = url.partition("?")[0].rpartition("/")[2]
    role = f"{name}_{setting.partition('_')[0]}"
    postgres.execute(f"CREATE ROLE {role} LOGIN")
    postgres.execute(f"ALTER DATABASE {name} OWNER TO {role}")
    of_role = f"SELECT pid FROM pg_stat_activity WHERE usename = '{role}'"
    store = SQLStore(url.replace("postgres@", f"{role}@"))
    await store.ready()
    await store.create("a", Body(b"1", b""))
    postgres.execute(f"ALTER ROLE {role} SET {setting}")
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM ({of_role}) AS ours")
    for attempt in range(3):
        with pytest.raises(StoreUnavailable):
            await store.create(f"b{attempt}", Body(b"2", b""))
    ours = set(postgres.execute(of_role))
    postgres.execute(f"ALTER ROLE {role} RESET {setting.partition(' ')[0]}")
    await store.create("c", Body(b"3", b""))
    assert (await store.get("c")) is not None
    assert not ours & set(postgres.execute(of_role))
    await store.close()


async def test_a_refused_write_replaces_the_sessions_that_read(postgres: PostgresServer) -> None:
    """They might be connected to a server that is a standby now, which has no later changes."""
    store = SQLStore(postgres.create_database())
    await store.ready()
    await store.create("a", Body(b"1", b""))
    assert await store.get("a") is not None
    before = set(await sessions(store))
    assert before
    with pytest.raises(StoreUnavailable, match="read-only transaction; connect to the primary server"):
        await store.database.write(refused_statement)
    assert await store.get("a") is not None
    await store.create("b", Body(b"2", b""))
    assert not before & set(await sessions(store))
    await store.close()


async def test_a_conflict_keeps_the_sessions(postgres: PostgresServer) -> None:
    store = SQLStore(postgres.create_database())
    await store.ready()
    await store.create("a", Body(b"1", b""))
    before = set(await sessions(store))
    with pytest.raises(StoreUnavailable, match="division by zero"):
        await store.database.write(lambda connection: connection.exec_driver_sql("SELECT 1 / 0"))
    assert before <= set(await sessions(store))
    await store.close()


def refused_statement(connection: Connection) -> None:
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    connection.exec_driver_sql("CREATE TABLE other ()")


async def sessions(store: SQLStore) -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    return await store.database.read(lambda connection: list(connection.exec_driver_sql(query).scalars()))
