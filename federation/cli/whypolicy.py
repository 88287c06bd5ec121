"""`fedctl why` about a policy: how many objects it applies to, and which, as far as the user may list them."""

from typing import TYPE_CHECKING, Any

from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.amounts import to_count
from federation.apimachinery.resources import Object, Resource
from federation.planning.waves.policychanges import record_of
from federation.planning.waves.waverecord import Phase
from federation.terminal.decisionview import print_title
from federation.terminal.kubeconfigcontext import get_json
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, make_table, print_field, print_table

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

_PATH = "/federation/v1/policyobjects"
_POLICIES = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES, OVERRIDE_POLICIES, CLUSTER_OVERRIDE_POLICIES)


def is_policy(resource: Resource) -> bool:
    """Return whether the resource is one of the four kinds of policy."""
    return any((resource.group, resource.kind) == (policy.group, policy.kind) for policy in _POLICIES)


async def why_policy(host: "HTTPClient", resource: Resource, namespace: str, name: str, output: str) -> None:
    """Print the objects of a policy. Of a cluster-wide one, a user without wider rights sees those in `namespace`."""
    policy = await host.get(resource, name, namespace if resource.namespaced else "")
    parameters = {"kind": resource.kind, "name": name}
    if resource.namespaced:
        parameters["namespace"] = namespace
    items, hidden = await _read(host, parameters)
    within = namespace if hidden and not resource.namespaced else ""
    if within:
        found, hidden = await _read(host, {**parameters, "objectNamespace": within})
        known = {tuple(item.items()) for item in items}
        items += [item for item in found if tuple(item.items()) not in known]
    if output != "table":
        print_document({"status": policy.get("status") or {}, "items": items, "hiddenResources": hidden}, output)
        return
    _print(resource, policy, items, hidden, within)


async def _read(host: "HTTPClient", parameters: dict[str, str]) -> tuple[list[dict[str, str]], list[str]]:
    """Return all pages of the answer, and the resources that the user may not list."""
    items: list[dict[str, str]] = []
    page: dict[str, str] = {}
    while True:
        answer: Any = await get_json(host, _PATH, {**parameters, **page})
        items += answer["items"]
        if not (after := answer["metadata"].get("continue")):
            return items, answer["hiddenResources"]
        page = {"continue": after}


def _print(resource: Resource, policy: Object, items: list[dict[str, str]], hidden: list[str], within: str) -> None:
    console, metadata, status = make_console(), policy["metadata"], policy.get("status") or {}
    count = status.get("refCount")
    applies = "Not counted yet" if count is None else f"applies to {to_count(count, 'object')}"
    print_title(console, f"{resource.kind.lower()}/{metadata['name']}", metadata.get("namespace", ""), applies)
    if (record := record_of(policy)) is not None and record.phase is not Phase.COMPLETE:
        print_field(console, "change", f"{record.revision} {record.phase}: {record.message or record.reason}")
    if within:
        print_field(console, "shown", f"what you may list in all namespaces, and in namespace {within}")
    if hidden:
        print_field(console, "hidden", f"{', '.join(hidden)}: you lack the permission to list them")
    if not items:
        return
    table = make_table()
    for heading in ("NAMESPACE", "KIND", "NAME"):
        table.add_column(heading, no_wrap=True)
    for item in items:
        table.add_row(item["namespace"] or "-", item["kind"], item["name"])
    print_table(console, table)
