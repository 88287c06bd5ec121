"""The command `fedctl support-bundle`: what helps to find a fault, in one archive, without secrets."""

import asyncio
import io
import platform
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from federation import __version__
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_ROLLOUTS,
    FEDERATED_TYPE_CONFIGS,
    LEFTOVERS,
    OVERRIDE_POLICIES,
    PLACEMENT_HOLDS,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.api.secretvalues import secret_values
from federation.apimachinery.clock import SystemClock, to_rfc3339
from federation.apimachinery.errors import ApiError, ConfigurationError
from federation.apimachinery.resources import EVENTS, SECRETS, Object, Resource
from federation.apiserver.auth.pki import write_private
from federation.cli import doctor
from federation.planning.diagnosis.findings import diagnose
from federation.planning.diagnosis.redaction import Redactor, reduced
from federation.terminal import flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_KINDS = (
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    CLUSTER_FEDERATED_OBJECTS,
    PROPAGATION_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
    FEDERATED_TYPE_CONFIGS,
    FEDERATED_ROLLOUTS,
    LEFTOVERS,
    PLACEMENT_HOLDS,
    EVENTS,
)
_CARRIERS = (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS, OVERRIDE_POLICIES, CLUSTER_OVERRIDE_POLICIES)
"""Kinds that carry values of Secrets, which are searched for, too."""
_OBJECTS_MAX = 2_000
"""The newest objects of a kind."""
_LOG_BYTES_MAX = 20 << 20
"""The end of a log."""
_TEXTS = {
    "readyz.txt": "/readyz?verbose",
    "metrics.txt": "/metrics",
    "decisions.json": "/federation/v1/decisions?limit=200",
}


def support_bundle_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive to write, for example bundle.tar.gz.")],
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="A log of the control plane to add, without secrets.")
    ] = None,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Write what helps to find a fault into one archive, without secrets.

    Holds metrics, findings, decisions, events and our kinds, without manifests of users. Values of Secrets are removed
    wherever they occur; look through the archive before you send it.
    """
    execute(write(KubeconfigContext(kubeconfig, context), file.expanduser(), log))


async def write(context: KubeconfigContext, file: Path, log: Path | None) -> None:
    """Write the archive and print what is in it."""
    if file.exists():
        raise ConfigurationError(f"{file} exists; name another file, or remove it first")
    logged = _read_end(log) if log is not None else None
    async with context.client() as host:
        notes: list[str] = []
        redactor = await _redactor(host, notes)
        parts = {path: redactor.text(text) for path, text in (await _texts(host, notes)).items()}
        findings = [finding._asdict() for finding in diagnose(await doctor.collect(host))]
        parts["doctor.json"] = _to_json(redactor.value(findings))
        for resource in _KINDS:
            found = await _newest(host, resource, notes)
            kept = [redactor.value(reduced({**item, "kind": resource.kind})) for item in found]
            parts[f"objects/{resource.plural}.json"] = _to_json(kept)
    if logged is not None:
        parts["serve.log"] = redactor.text(logged)
    parts["about.json"] = _to_json(
        {
            "createdAt": to_rfc3339(SystemClock().now()),
            "fedctl": __version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "notes": notes,
        }
    )
    await asyncio.to_thread(write_private, file, _to_archive(parts))
    print(f"{file}: {len(parts)} files, without values of Secrets; look through them before you send them")
    for note in notes:
        print(f"  {note}")


async def _redactor(host: "HTTPClient", notes: list[str]) -> Redactor:
    secrets = await _items(host, SECRETS, notes)
    if not secrets:
        notes.append("no Secret could be read, so texts were not searched for their values")
    found = [{**secret, "kind": SECRETS.kind} for secret in secrets]
    for resource in _CARRIERS:
        found += [{**obj, "kind": resource.kind} for obj in await _items(host, resource, notes)]
    return Redactor(value for obj in found for value in secret_values(obj))


async def _texts(host: "HTTPClient", notes: list[str]) -> dict[str, str]:
    found = {}
    for name, path in _TEXTS.items():
        code, body = await host.raw("GET", path)
        if code not in (200, 500):
            notes.append(f"{path} answered {code}")
            continue
        found[name] = body.decode(errors="replace")
    return found


async def _newest(host: "HTTPClient", resource: Resource, notes: list[str]) -> list[Object]:
    items = await _items(host, resource, notes)
    if len(items) > _OBJECTS_MAX:
        notes.append(f"{len(items)} {resource.plural} exist; the {_OBJECTS_MAX} that changed last are kept")
        items = sorted(items, key=lambda item: int(item["metadata"]["resourceVersion"]))[-_OBJECTS_MAX:]
    return items


async def _items(host: "HTTPClient", resource: Resource, notes: list[str]) -> list[Object]:
    try:
        return (await host.list(resource)).items
    except ApiError as error:
        notes.append(error.message)
        return []


def _read_end(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _LOG_BYTES_MAX, 0))
            return file.read().decode(errors="replace")
    except OSError as error:
        raise ConfigurationError(f"--log {path}: {error.strerror}; give the file of the control plane's log") from error


def _to_json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n"


def _to_archive(parts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in sorted(parts.items()):
            data = text.encode()
            member = tarfile.TarInfo(f"support-bundle/{path}")
            member.size, member.mode = len(data), 0o600
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
