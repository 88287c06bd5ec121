"""The webhook configurations and the definition that connect a cluster's API server with this service.

The webhooks cannot block the cluster: a call that fails is ignored, system namespaces are left out, and match
conditions keep pods without an owner from being sent at all. `install` and `uninstall` may be repeated.
"""

import contextlib
from collections.abc import Callable
from typing import Any

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import ADVANCED_STATEFUL_SETS, CLONE_SETS, KRUISE_GROUP, WORKLOAD_SPREADS
from federation.apimachinery.definitions import lacking_fields
from federation.apimachinery.errors import ConfigurationError, Conflict, NotFound
from federation.apimachinery.resources import CRDS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Object, Resource
from federation.client.client import Client, PatchType
from federation.features.workloadspread.names import MATCHED_WORKLOAD_SPREAD

CREATE_POD, REMOVE_POD, EVICT_POD, WRITE_SPREAD = "create-pod", "remove-pod", "evict-pod", "write-workloadspread"
PATHS = {f"/{handler}": handler for handler in (CREATE_POD, REMOVE_POD, EVICT_POD, WRITE_SPREAD)}
"""The handler behind each path of the service."""
TIMEOUT_S = 10
"""How long the API server waits; the service admits a request earlier (`ReviewOptions.deadline_s`)."""

_MANAGER = "workloadspread"
"""Not the manager of the federation, which may deliver the same definition to the cluster."""
_LABELS = {"app.kubernetes.io/managed-by": names.FIELD_MANAGER}
_RESOURCES = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)

ClientConfig = Callable[[str], Object]
"""Returns the clientConfig of a webhook for a path."""

_NAMESPACES = {
    "matchExpressions": [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "kube-public", "kube-node-lease", names.SYSTEM_NAMESPACE],
        },
        {"key": "control-plane", "operator": "DoesNotExist"},
    ]
}
_HAS_OWNER = (
    "has(object.metadata.ownerReferences) && "
    "object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller)"
)
_IS_SPREAD = f"has(oldObject.metadata.annotations) && '{MATCHED_WORKLOAD_SPREAD}' in oldObject.metadata.annotations"


def to_configurations(client_config: ClientConfig) -> tuple[Object, Object]:
    """Return the mutating and the validating webhook configuration."""

    def webhook(handler: str, group: str, resource: str, operations: list[str], condition: str = "") -> Object:
        return {
            "name": f"{handler}.{names.SPREAD_WEBHOOKS}",
            "clientConfig": client_config(f"/{handler}"),
            "rules": [
                {
                    "operations": operations,
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "resources": [resource],
                    "scope": "Namespaced",
                }
            ],
            "matchConditions": [{"name": "is-concerned", "expression": condition}] if condition else [],
            "namespaceSelector": _NAMESPACES,
            "failurePolicy": "Ignore",
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": TIMEOUT_S,
            "admissionReviewVersions": ["v1"],
        }

    def configuration(kind: str, webhooks: list[Object]) -> Object:
        metadata = {"name": names.SPREAD_WEBHOOKS, "labels": _LABELS}
        return {
            "apiVersion": MUTATING_WEBHOOKS.api_version,
            "kind": kind,
            "metadata": metadata,
            "webhooks": webhooks,
        }

    return (
        configuration(MUTATING_WEBHOOKS.kind, [webhook(CREATE_POD, "", "pods", ["CREATE"], _HAS_OWNER)]),
        configuration(
            VALIDATING_WEBHOOKS.kind,
            [
                webhook(REMOVE_POD, "", "pods", ["DELETE"], _IS_SPREAD),
                webhook(EVICT_POD, "", "pods/eviction", ["CREATE"]),
                webhook(WRITE_SPREAD, KRUISE_GROUP, WORKLOAD_SPREADS.plural, ["CREATE", "UPDATE"]),
            ],
        ),
    )


_WORKLOADS = frozenset(resource.group_resource for resource in (CLONE_SETS, ADVANCED_STATEFUL_SETS))
"""Kinds that need OpenKruise's controllers in the cluster, which bring the definitions."""


def definitions() -> list[Object]:
    """Return the definitions of the kinds that work inside a cluster, with the label that makes them ours."""
    manifests = [
        manifest
        for manifest in crd_manifests()
        if manifest["spec"]["group"] == KRUISE_GROUP and manifest["metadata"]["name"] not in _WORKLOADS
    ]
    for manifest in manifests:
        manifest["metadata"]["labels"] = _LABELS
    return manifests


async def install_definitions(client: Client) -> None:
    """Create or update the definitions; ConfigurationError when the cluster has them from another project."""
    for manifest in definitions():
        name = manifest["metadata"]["name"]
        with contextlib.suppress(NotFound):
            if not _is_ours(await client.get(CRDS, name)):
                raise ConfigurationError(
                    f"the cluster has the definition {name} of another project; uninstall it first"
                )
        await client.patch(CRDS, name, manifest, patch_type=PatchType.APPLY, field_manager=_MANAGER, force=True)


async def restore_definitions(client: Client) -> list[str]:
    """Install definitions that are gone or lack fields of ours; return a problem for each that others write.

    Another one, also one that the federation delivers from its host, removes from a status what it does not have.
    """
    problems = []
    for manifest in definitions():
        name = manifest["metadata"]["name"]
        try:
            found = await client.get(CRDS, name)
        except NotFound:
            found = {"metadata": {"labels": _LABELS}}
        lacking = lacking_fields(found, manifest) if "spec" in found else ["all"]
        if not lacking:
            continue
        labels = found["metadata"].get("labels") or {}
        if _is_ours(found) and names.MANAGED_LABEL not in labels:
            await client.patch(CRDS, name, manifest, patch_type=PatchType.APPLY, field_manager=_MANAGER, force=True)
            continue
        where = "on the host of the federation, which delivers it" if names.MANAGED_LABEL in labels else "here"
        problems.append(
            f"the definition {name} lacks {', '.join(lacking)}, so limits may be exceeded: update it {where},"
            " with the one that fedctl spread-webhook installs"
        )
    return problems


async def install_webhooks(client: Client, client_config: ClientConfig) -> None:
    """Create or replace the webhook configurations."""
    for resource, configuration in zip(_RESOURCES, to_configurations(client_config), strict=True):
        await client.patch(
            resource,
            names.SPREAD_WEBHOOKS,
            configuration,
            patch_type=PatchType.APPLY,
            field_manager=_MANAGER,
            force=True,
        )


async def restore_webhooks(client: Client, client_config: ClientConfig) -> None:
    """Create the webhook configurations if they are gone, and correct those with these URLs; keep those of others."""
    for resource, wanted in zip(_RESOURCES, to_configurations(client_config), strict=True):
        try:
            found = await client.get(resource, names.SPREAD_WEBHOOKS)
        except NotFound:
            await install_webhooks(client, client_config)
            return
        if _urls(found) == _urls(wanted) and not _has_client_config(found, wanted):
            await install_webhooks(client, client_config)
            return


async def uninstall_webhooks(client: Client, client_config: ClientConfig | None = None) -> None:
    """Delete the webhook configurations; with a `client_config` only those that still have it."""
    for index, resource in enumerate(_RESOURCES):
        with contextlib.suppress(NotFound, Conflict):
            found = await client.get(resource, names.SPREAD_WEBHOOKS)
            if client_config is not None and not _has_client_config(found, to_configurations(client_config)[index]):
                continue
            version = found["metadata"]["resourceVersion"]
            await client.delete(resource, names.SPREAD_WEBHOOKS, resource_version=version)


async def uninstall_definitions(client: Client) -> list[str]:
    """Delete the definitions of kinds without objects; return a line for each one that stays."""
    kept = []
    for manifest in definitions():
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        with contextlib.suppress(NotFound):
            if not _is_ours(await client.get(CRDS, name)):
                kept.append(f"the definition {name} of another project stays")
                continue
            kind, plural = spec["names"]["kind"], spec["names"]["plural"]
            found = await client.list(Resource(spec["group"], spec["versions"][0]["name"], kind, plural), limit=1)
            if found.items:
                kept.append(f"the definition {name} stays, because there are objects of it")
                continue
            await client.delete(CRDS, name)
    return kept


def _urls(configuration: Object) -> list[Any]:
    configs = [webhook.get("clientConfig") or {} for webhook in configuration.get("webhooks") or ()]
    return [config.get("url") for config in configs]


def _has_client_config(found: Object, wanted: Object) -> bool:
    def configs(configuration: Object) -> list[Any]:
        return [webhook.get("clientConfig") for webhook in configuration.get("webhooks") or ()]

    return configs(found) == configs(wanted)


def _is_ours(definition: Object) -> bool:
    labels = definition["metadata"].get("labels") or {}
    return labels.get("app.kubernetes.io/managed-by") == names.FIELD_MANAGER or names.MANAGED_LABEL in labels
