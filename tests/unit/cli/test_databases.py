"""`fedctl db`, `backup` and `restore` on a SQLite directory: keys, exit codes, and what they print."""

import asyncio
from pathlib import Path

import orjson
import pytest
from tests.support.stores import a_body
from typer.testing import CliRunner, Result

from federation.api import names
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import Body
from federation.apiserver.store.schema import SCHEMA_VERSION
from federation.apiserver.store.sql import SQLStore
from federation.cli.main import app
from federation.planning.leftovers.restoration import Restoration

CONFIGS = f"/{FEDERATED_TYPE_CONFIGS.group}/{FEDERATED_TYPE_CONFIGS.plural}/"
RECORD = f"/core/configmaps/{names.SYSTEM_NAMESPACE}/{names.SHIPPED_TYPES}"
NAMESPACE = f"/core/namespaces/{names.SYSTEM_NAMESPACE}"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def refusal(result: Result) -> str:
    assert isinstance(result.exception, ConfigurationError), result.output
    return str(result.exception)


async def _fill(directory: Path) -> None:
    store = SQLStore(f"sqlite:///{directory}/state.db")
    await store.ready()
    await store.create(NAMESPACE, Body(b'{"metadata":{"resourceVersion":"', b'"}}'))
    await store.create("/a", a_body())
    await store.close()


async def _namespace(directory: Path) -> dict[str, object]:
    store = SQLStore(f"sqlite:///{directory}/state.db")
    await store.ready()
    entry = await store.get(NAMESPACE)
    await store.close()
    assert entry is not None
    found: dict[str, object] = orjson.loads(entry.value)
    return found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A state directory with two objects and two key files."""
    folder = tmp_path / "state"
    (folder / "pki" / "front-proxy").mkdir(parents=True)
    (folder / "pki" / "ca.key").write_bytes(b"a key")
    (folder / "pki" / "front-proxy" / "ca.crt").write_bytes(b"a certificate")
    asyncio.run(_fill(folder))
    return folder


def test_a_restored_directory_has_objects_keys_and_the_times_of_the_loss(directory: Path, tmp_path: Path) -> None:
    backed_up = run("backup", tmp_path / "b", "--dir", directory)
    assert "2 objects at revision 2, 2 key files" in backed_up.output
    restored = run("restore", tmp_path / "b", "--dir", tmp_path / "new")
    assert restored.exit_code == 0, restored.exception
    assert "fedctl leftovers" in restored.output
    key = tmp_path / "new" / "pki" / "ca.key"
    assert (key.read_bytes(), key.stat().st_mode & 0o777) == (b"a key", 0o600)
    assert (tmp_path / "new" / "pki" / "front-proxy" / "ca.crt").read_bytes() == b"a certificate"
    found = Restoration.of(asyncio.run(_namespace(tmp_path / "new")))
    assert found is not None
    assert found.backup_at <= found.restored_at


def test_other_keys_and_other_objects_are_not_overwritten(directory: Path, tmp_path: Path) -> None:
    run("backup", tmp_path / "b", "--dir", directory)
    assert "give --replace" in refusal(run("restore", tmp_path / "b", "--dir", directory))
    assert run("restore", tmp_path / "b", "--dir", directory, "--replace").exit_code == 0
    (directory / "pki" / "ca.key").write_bytes(b"another key")
    text = refusal(run("restore", tmp_path / "b", "--dir", directory, "--replace"))
    assert "ca.key is another key than the backup's; move" in text
    assert (directory / "pki" / "ca.key").read_bytes() == b"another key"


def test_the_schema_goes_down_and_up_and_a_check_says_so(directory: Path) -> None:
    assert "damage    none" in run("db", "check", "--dir", directory).output
    down = run("db", "downgrade", "--to", SCHEMA_VERSION - 1, "--dir", directory)
    assert f"schema {SCHEMA_VERSION} -> {SCHEMA_VERSION - 1}" in down.output
    due = run("db", "check", "--dir", directory)
    assert (due.exit_code, "fedctl db upgrade" in due.output) == (1, True)
    assert f"schema {SCHEMA_VERSION - 1} -> {SCHEMA_VERSION}" in run("db", "upgrade", "--dir", directory).output
    assert "nothing to do" in run("db", "upgrade", "--dir", directory).output


async def _shipped(directory: Path, given: dict[str, list[str]] | None = None) -> tuple[list[str], list[str]]:
    """Return the stored FederatedTypeConfigs and those in the record of what was shipped, after storing the given."""
    store = SQLStore(f"sqlite:///{directory}/state.db")
    await store.ready()
    if given is not None:
        data = dict.fromkeys(given["record"], "{}")
        record = {"metadata": {"name": names.SHIPPED_TYPES, "uid": "r"}, "data": data}
        await store.create(RECORD, encoding.encode(encoding.encode_head("v1", "ConfigMap"), record))
        head = encoding.encode_head(FEDERATED_TYPE_CONFIGS.api_version, FEDERATED_TYPE_CONFIGS.kind)
        for name in given["configs"]:
            await store.create(CONFIGS + name, encoding.encode(head, {"metadata": {"name": name, "uid": name}}))
    configs = [entry.key.removeprefix(CONFIGS) for entry in (await store.list(CONFIGS)).entries]
    found = await store.get(RECORD)
    await store.close()
    assert found is not None
    return configs, sorted(encoding.decode(found.value)["data"])


def test_a_downgrade_removes_configurations_that_the_earlier_version_would_misread(directory: Path) -> None:
    acting, webhooks = (
        "apiservices.apiregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    )
    # Somebody deleted one that was shipped, and wrote another one by hand.
    given = {"record": [acting, "deployments.apps"], "configs": [acting, "deployments.apps", webhooks]}
    asyncio.run(_shipped(directory, given))
    assert "removed" not in run("db", "downgrade", "--to", SCHEMA_VERSION, "--dir", directory).output
    down = run("db", "downgrade", "--to", 4, "--dir", directory)
    assert down.exit_code == 0, down.exception
    assert f"which that version does not know: {acting}\n" in down.output
    assert "removed" not in run("db", "downgrade", "--to", 4, "--dir", directory).output
    run("db", "upgrade", "--dir", directory)
    # The next start ships it again, as no record of it is left.
    assert asyncio.run(_shipped(directory)) == (["deployments.apps", webhooks], ["deployments.apps"])


def test_a_mistyped_directory_is_named(tmp_path: Path) -> None:
    for command in (["db", "check"], ["db", "upgrade"], ["backup", tmp_path / "b"]):
        assert "does not exist" in refusal(run(*command, "--dir", tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()
