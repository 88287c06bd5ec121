"""The demo's other workloads: a StatefulSet, a Service with an address and a Job, each shown in one line.

`demo.py` applies `examples/workloads` and waits for the lines. They name what the members report, and the host's merged
status has to agree before they are shown.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ClusterError, FederationError, NotFound
from federation.apimachinery.listening import Patience
from federation.apimachinery.resources import JOBS, SERVICES, STATEFUL_SETS, Object, Resource

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_NAMESPACE = "demo"
_SHOWN = ((STATEFUL_SETS, "db"), (SERVICES, "db"), (JOBS, "import"))


async def wait_for_workloads(
    host: "HTTPClient", members: Mapping[str, "HTTPClient"], clock: Clock, timeout_s: float
) -> list[str]:
    """Return a line per object once members and host agree; FederationError after `timeout_s`."""
    patience = Patience(clock, timeout_s)
    while True:
        lines = [await _describe(host, members, resource, name) for resource, name in _SHOWN]
        found = zip(_SHOWN, lines, strict=True)
        missing = [f"{resource.kind.lower()}/{name}" for (resource, name), line in found if not line]
        if not missing:
            return lines
        if patience.is_over():
            raise FederationError(f"{', '.join(missing)} did not converge in {timeout_s:g} s; see: fedctl why")
        await clock.sleep(0.1)


async def _describe(host: "HTTPClient", members: Mapping[str, "HTTPClient"], resource: Resource, name: str) -> str:
    """Return the line of one object, "" while it is not where and how it should be."""
    held = {member: obj for member, client in members.items() if (obj := await _read(client, resource, name))}
    merged = await _read(host, resource, name)
    facts = {member: _fact(obj) for member, obj in held.items()}
    if merged is None or not facts or not all(facts.values()) or not _agrees(merged, held):
        return ""
    where = ", ".join(f"{member} ({fact})" for member, fact in sorted(facts.items()))
    return f"{resource.kind.lower()}/{name}: {where}"


async def _read(client: "HTTPClient", resource: Resource, name: str) -> Object | None:
    try:
        return await client.get(resource, name, _NAMESPACE)
    except (NotFound, ClusterError):
        return None


def _fact(obj: Object) -> str:
    """Return what a member reports of its object, "" while it is not finished."""
    spec, status = obj["spec"], obj.get("status") or {}
    if obj["kind"] == "StatefulSet":
        ready = status.get("readyReplicas", 0)
        return f"{ready}/{spec['replicas']} ready" if ready == spec["replicas"] else ""
    if obj["kind"] == "Job":
        done = status.get("succeeded", 0)
        return f"{done}/{spec['completions']} completed" if done == spec["completions"] else ""
    entries = (status.get("loadBalancer") or {}).get("ingress") or ()
    return ", ".join(each["ip"] for each in entries)


def _agrees(merged: Object, held: Mapping[str, Object]) -> bool:
    """Return True if the host's status counts what the members have."""
    for field in ("readyReplicas", "succeeded"):
        found = sum((obj.get("status") or {}).get(field, 0) for obj in held.values())
        if (merged.get("status") or {}).get(field, 0) != found:
            return False
    return True
