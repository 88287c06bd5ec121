"""The bootstrap policy of kube-apiserver: cluster-admin, admin, edit, view and the `system:` roles, with bindings.

`bootstrappolicy.json` lists them as a real kube-apiserver creates them (`tools/generate_bootstrappolicy.py`), so that
Kubernetes' controllers and scheduler can work here with their own identities. They are created when missing and never
updated, so an administrator's changes are kept. The one exception are rules for retired resources, which older versions
granted: they are removed at every start (`RBACOptions`).
"""

import asyncio
import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import orjson
import structlog

from federation.apimachinery.errors import AlreadyExists, Conflict, NotFound
from federation.apiserver.auth.escalation import RBAC_GROUP
from federation.apiserver.auth.rbac import ImpliedPermissions
from federation.apiserver.registry.objects import patch_version
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import WriteOptions

_log = structlog.get_logger(__name__)

Rules = Sequence[dict[str, Any]]
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_AGGREGATE_NAME = "system:aggregate-to-"
_FILE = "bootstrappolicy.json"
_ROLES = frozenset({"clusterroles", "roles"})
_KINDS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
_CREATES_MAX = 32
"""Creates at the same time; the store commits them together."""
_AGGREGATED = ("view", "edit", "admin")
_OPTIONS = WriteOptions(field_manager="federation-bootstrap")
_ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class RBACOptions:
    """Additions to Kubernetes' roles by the owner of an API server. The defaults add nothing."""

    rules: Mapping[str, Rules] = field(default_factory=dict)
    """Additional rules of the default roles `view`, `edit` and `admin`, by role."""
    retired: frozenset[tuple[str, str]] = frozenset()
    """Group and plural of resources that the default roles granted once; their rules are removed at start."""
    implied: ImpliedPermissions = field(default_factory=dict)
    """Resources that need a permission on another resource as well, because they contain its objects."""


async def ensure_default_rbac(registry: Registry, options: RBACOptions | None = None) -> None:
    """Create the default roles and bindings that are missing; remove rules for retired resources."""
    options = options or RBACOptions()
    places = asyncio.Semaphore(_CREATES_MAX)

    async def ensure(plural: str, obj: dict[str, Any]) -> None:
        info = registry.kinds.lookup(RBAC_GROUP, "v1", plural)
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        with contextlib.suppress(NotFound):
            await registry.get(info, namespace, name)  # a restart finds all of them: a tenth of the cost of a create
            return
        async with places:
            with contextlib.suppress(AlreadyExists):
                await registry.create(info, namespace, obj, _OPTIONS)

    await asyncio.gather(*(ensure(plural, obj) for plural, obj in default_objects(options)))
    if options.retired:
        # The aggregated roles hold copies of the rules, which are in force until the aggregation controller runs.
        roles = [name for each in _AGGREGATED for name in (f"system:aggregate-to-{each}", each)]
        await asyncio.gather(*(_remove_retired(registry, name, options.retired) for name in roles))


async def _remove_retired(registry: Registry, name: str, retired: Collection[tuple[str, str]]) -> None:
    info = registry.kinds.lookup(RBAC_GROUP, "v1", "clusterroles")
    for _ in range(_ATTEMPTS_MAX):
        try:
            role = orjson.loads(await registry.get(info, "", name))
        except NotFound:
            return
        rules = role.get("rules") or []
        kept = without_retired(rules, retired)
        if kept == rules:
            return
        try:
            await patch_version(registry, info, role, {"rules": kept}, _OPTIONS)
        except Conflict:
            # Another process of an older version, or an administrator, wrote the role in between.
            continue
        removed = sorted(_resources(rules) - _resources(kept))
        _log.warning("rules of a default role removed", role=name, resources=removed)
        return
    raise Conflict(f'clusterroles.{RBAC_GROUP} "{name}": other writers keep changing it; start again')


def without_retired(rules: Rules, retired: Collection[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the rules without the retired resources and their subresources; everything else stays as it is.

    A rule for several groups is split, so that the other groups keep their resources.
    """
    kept: list[dict[str, Any]] = []
    for rule in rules:
        groups, resources = rule.get("apiGroups") or [], rule.get("resources") or []
        others: list[str] = []
        for group in groups:
            remaining = [name for name in resources if (group, name.partition("/")[0]) not in retired]
            if len(remaining) == len(resources):
                others.append(group)
            elif remaining:
                kept.append({**rule, "apiGroups": [group], "resources": remaining})
        if others or not groups:
            kept.append(rule if others == groups else {**rule, "apiGroups": others})
    return kept


def _resources(rules: Rules) -> set[str]:
    return {resource for rule in rules for resource in rule.get("resources") or ()}


@functools.cache
def _policy() -> list[tuple[str, dict[str, Any]]]:
    """Return plural and fields of each object; they are read-only."""
    policy: list[tuple[str, dict[str, Any]]] = orjson.loads(resources.files(__package__).joinpath(_FILE).read_bytes())
    return policy


def default_objects(options: RBACOptions) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the default roles and bindings, each with its plural: roles before the bindings to them."""
    added = {f"{_AGGREGATE_NAME}{name}": rules for name, rules in options.rules.items()}
    for plural, fields in _policy():
        metadata = fields["metadata"]
        obj = {
            "apiVersion": f"{RBAC_GROUP}/v1",
            "kind": _KINDS[plural],
            **fields,
            "metadata": {
                **metadata,
                "labels": {**_LABELS, **metadata.get("labels", {})},
                "annotations": dict(_ANNOTATIONS),
            },
        }
        if plural in _ROLES:
            obj["rules"] = [*fields.get("rules", ()), *added.get(metadata["name"], ())]
        yield plural, obj
