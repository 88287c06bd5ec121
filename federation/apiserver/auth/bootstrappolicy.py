"""The bootstrap policy of kube-apiserver: cluster-admin, admin, edit, view and the `system:` roles, with bindings.

They are created when missing and never updated, so an administrator's changes are kept. The one exception are rules
for retired resources, which older versions granted: they are removed at every start (`RBACOptions`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog

from federation.apimachinery.errors import AlreadyExists, Conflict, NotFound
from federation.apiserver.auth.escalation import RBAC_GROUP
from federation.apiserver.auth.rbac import ImpliedPermissions
from federation.apiserver.registry.capublisher import AUTHENTICATION, AUTHENTICATION_NAMESPACE
from federation.apiserver.registry.objects import patch_version
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import WriteOptions

_log = structlog.get_logger(__name__)

Rules = Sequence[dict[str, Any]]
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_WORKLOADS: list[tuple[list[str], list[str]]] = [
    (
        [""],
        [
            "configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "replicationcontrollers/scale",
            "serviceaccounts", "services",
        ],
    ),
    (
        ["apps"],
        [
            "controllerrevisions", "daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale",
            "statefulsets", "statefulsets/scale",
        ],
    ),
    (["autoscaling"], ["horizontalpodautoscalers"]),
    (["batch"], ["cronjobs", "jobs"]),
    (["networking.k8s.io"], ["ingresses", "networkpolicies"]),
    (["policy"], ["poddisruptionbudgets"]),
    (["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"]),
]  # fmt: skip
_READ_ONLY: list[tuple[list[str], list[str]]] = [
    # Whoever writes endpoints can send other namespaces' traffic anywhere in a member (CVE-2021-25740).
    ([""], ["endpoints"]),
    (["discovery.k8s.io"], ["endpointslices"]),
    ([""], ["events", "limitranges", "namespaces", "namespaces/status", "pods/log", "pods/status", "resourcequotas"]),
    (["resource.k8s.io"], ["resourceclaims/status"]),
    (["apps"], ["daemonsets/status", "deployments/status", "replicasets/status", "statefulsets/status"]),
]
_PUBLIC_PATHS = ["/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"]
_DISCOVERY_PATHS = [
    "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version",
    "/version/",
]  # fmt: skip
_ISSUER_PATHS = ["/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks"]
_MONITORING_PATHS = ["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/readyz", "/readyz/*"]
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_AGGREGATED = ("view", "edit", "admin")
_OPTIONS = WriteOptions(field_manager="federation-bootstrap")
_ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class RBACOptions:
    """What the owner of an API server adds to Kubernetes' roles. The defaults are Kubernetes' own."""

    rules: Mapping[str, Rules] = field(default_factory=dict)
    """Additional rules of the default roles `view`, `edit` and `admin`, by role."""
    retired: frozenset[tuple[str, str]] = frozenset()
    """Group and plural of resources that the default roles granted once; their rules are removed at start."""
    implied: ImpliedPermissions = field(default_factory=dict)
    """Resources that need a permission on another resource as well, because they contain its objects."""


async def ensure_default_rbac(registry: Registry, options: RBACOptions | None = None) -> None:
    """Create the default roles and bindings that are missing; remove rules for retired resources."""
    options = options or RBACOptions()
    for plural, obj in default_objects(options):
        info = registry.kinds.lookup(RBAC_GROUP, "v1", plural)
        try:
            await registry.create(info, obj["metadata"].get("namespace", ""), obj, _OPTIONS)
        except AlreadyExists:
            continue
    if options.retired:
        # The aggregated roles hold copies of the rules, which are in force until the aggregation controller runs.
        for name in _AGGREGATED:
            await _remove_retired(registry, f"system:aggregate-to-{name}", options.retired)
            await _remove_retired(registry, name, options.retired)


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


def default_objects(options: RBACOptions) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the default roles and bindings, each with its plural."""
    yield _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), _paths(["*"], ["*"])])
    yield _binding("cluster-admin", "cluster-admin", ["system:masters"])
    yield _role("system:discovery", [_paths(["get"], _DISCOVERY_PATHS)])
    yield _binding("system:discovery", "system:discovery", ["system:authenticated"])
    yield _role("system:public-info-viewer", [_paths(["get"], _PUBLIC_PATHS)])
    yield _binding(
        "system:public-info-viewer", "system:public-info-viewer", ["system:authenticated", "system:unauthenticated"]
    )
    reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    yield _role(
        "system:basic-user",
        [
            _rule(["create"], ["authorization.k8s.io"], reviews),
            _rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
        ],
    )
    yield _binding("system:basic-user", "system:basic-user", ["system:authenticated"])
    yield _role(
        "system:auth-delegator",
        [
            _rule(["create"], ["authentication.k8s.io"], ["tokenreviews"]),
            _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
        ],
    )
    yield _role("system:service-account-issuer-discovery", [_paths(["get"], _ISSUER_PATHS)])
    yield _binding(
        "system:service-account-issuer-discovery",
        "system:service-account-issuer-discovery",
        ["system:serviceaccounts"],
    )
    yield _role("system:monitoring", [_paths(["get"], _MONITORING_PATHS)])
    yield _binding("system:monitoring", "system:monitoring", ["system:monitoring"])
    yield _authentication_reader()
    views = [_rule(_READ, groups, resources) for groups, resources in [*_WORKLOADS, *_READ_ONLY]]
    edits = [_rule(_WRITE, groups, resources) for groups, resources in _WORKLOADS]
    edits += [
        _rule([*_READ, *_WRITE], [""], ["secrets"]),
        _rule(["create"], [""], ["serviceaccounts/token", "pods/eviction"]),
        _rule(["impersonate"], [""], ["serviceaccounts"]),
    ]
    admins = [
        _rule(["create"], ["authorization.k8s.io"], ["localsubjectaccessreviews"]),
        _rule([*_READ, *_WRITE], [RBAC_GROUP], ["rolebindings", "roles"]),
    ]
    for name, rules in zip(_AGGREGATED, (views, edits, admins), strict=True):
        yield _role(f"system:aggregate-to-{name}", [*rules, *options.rules.get(name, ())], aggregate_to=name)
    yield _role("view", [], aggregate_to="edit", aggregates="view")
    yield _role("edit", [], aggregate_to="admin", aggregates="edit")
    yield _role("admin", [], aggregates="admin")


def _role(
    name: str, rules: list[dict[str, Any]], *, aggregate_to: str = "", aggregates: str = ""
) -> tuple[str, dict[str, Any]]:
    labels = {**_LABELS, **({_AGGREGATE + aggregate_to: "true"} if aggregate_to else {})}
    role: dict[str, Any] = {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels, "annotations": dict(_ANNOTATIONS)},
        "rules": rules,
    }
    if aggregates:
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {_AGGREGATE + aggregates: "true"}}]}
    return "clusterroles", role


def _authentication_reader() -> tuple[str, dict[str, Any]]:
    """Return the Role that aggregated API servers need, to verify client certificates as this server does."""
    rule = {**_rule(_READ, [""], ["configmaps"]), "resourceNames": [AUTHENTICATION]}
    _, role = _role("extension-apiserver-authentication-reader", [rule])
    return "roles", {**role, "kind": "Role", "metadata": {**role["metadata"], "namespace": AUTHENTICATION_NAMESPACE}}


def _binding(name: str, role: str, groups: list[str]) -> tuple[str, dict[str, Any]]:
    return "clusterrolebindings", {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": dict(_LABELS), "annotations": dict(_ANNOTATIONS)},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": group} for group in groups],
    }


def _rule(verbs: list[str], groups: list[str], resources: list[str]) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}


def _paths(verbs: list[str], paths: list[str]) -> dict[str, Any]:
    return {"verbs": list(verbs), "nonResourceURLs": list(paths)}
