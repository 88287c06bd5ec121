"""The roles and bindings that every cluster has: cluster-admin, admin, edit, view, and those of the system.

Created when missing, like kube-apiserver's bootstrap policy; what an administrator changed stays changed.
"""

from collections.abc import Iterator
from typing import Any

from federation.base.errors import AlreadyExists
from federation.registry.options import WriteOptions
from federation.registry.registry import Registry
from federation.server.escalation import RBAC_GROUP

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_WORKLOADS: list[tuple[list[str], list[str]]] = [
    (
        [""],
        [
            "configmaps", "endpoints", "persistentvolumeclaims", "pods", "replicationcontrollers",
            "replicationcontrollers/scale", "serviceaccounts", "services",
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
    (["discovery.k8s.io"], ["endpointslices"]),
    (
        ["core.kubeadmiral.io"],
        ["collectedstatuses", "federatedobjects", "overridepolicies", "propagatedversions", "propagationpolicies"],
    ),
]  # fmt: skip
_READ_ONLY: list[tuple[list[str], list[str]]] = [
    ([""], ["events", "limitranges", "namespaces", "namespaces/status", "pods/log", "pods/status", "resourcequotas"]),
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


async def ensure_default_rbac(registry: Registry) -> None:
    """Create the default ClusterRoles and ClusterRoleBindings that are missing."""
    options = WriteOptions(field_manager="federation-bootstrap")
    for plural, obj in _objects():
        info = registry.kinds.lookup(RBAC_GROUP, "v1", plural)
        try:
            await registry.create(info, "", obj, options)
        except AlreadyExists:
            continue


def _objects() -> Iterator[tuple[str, dict[str, Any]]]:
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
    yield _role("system:aggregate-to-view", views, aggregate_to="view")
    yield _role("system:aggregate-to-edit", edits, aggregate_to="edit")
    yield _role("system:aggregate-to-admin", admins, aggregate_to="admin")
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
