"""The objects that an existing API server needs to be a host: namespace, account, rights, definitions. Pure.

The controllers act as one service account, whose ClusterRole has no wildcard: the kinds of the federation, the kinds
that are federated by default, and the few others that it reads. For kinds that are federated later an administrator
binds another ClusterRole to the account. `installation.py` writes the objects.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.federatedtype import default_type_configs, from_config
from federation.api.resources import KUEUE_GROUP
from federation.apimachinery.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONTROLLER_REVISIONS,
    CRDS,
    REPLICA_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ROLES,
    Object,
)
from federation.planning.federatedobject.hosteffect import ACTING

ACCOUNT = "federation"
USER = f"system:serviceaccount:{names.SYSTEM_NAMESPACE}:{ACCOUNT}"
_EVERYBODY = "system:authenticated"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{names.SYSTEM_NAMESPACE}", _EVERYBODY)
"""User and groups of the account, as the API server sees it."""


class ConfigMapName(NamedTuple):
    """A ConfigMap of the host."""

    name: str
    namespace: str


CLIENT_CA = ConfigMapName("extension-apiserver-authentication", "kube-system")
"""Where every API server publishes the CA of its users' client certificates."""
REVIEWED_ROLE = "federation:overridden-objects"
_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "delete", "patch", "update")
LABELS = {"app.kubernetes.io/managed-by": names.FIELD_MANAGER}
_RBAC = CLUSTER_ROLES.group
_ADMISSION = "admissionregistration.k8s.io"

Rules = Mapping[str, Sequence[Mapping[str, Any]]]


def host_manifests(tenant_rules: Rules) -> list[Object]:
    """Return the objects without the definitions; `tenant_rules` are added to the default roles of these names."""
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": names.SYSTEM_NAMESPACE}
    everybody = {"kind": "Group", "apiGroup": _RBAC, "name": _EVERYBODY}
    reviewed = [{"kind": "User", "apiGroup": _RBAC, "name": name} for name in names.REVIEWERS]
    return [
        _object("v1", "Namespace", names.SYSTEM_NAMESPACE),
        _object("v1", "ServiceAccount", ACCOUNT, namespace=names.SYSTEM_NAMESPACE),
        _cluster_role("federation", account_rules()),
        _binding("federation", account),
        _cluster_role(REVIEWED_ROLE, [_rule(group, plurals, ("create",)) for group, plurals in _federated().items()]),
        _binding(REVIEWED_ROLE, *reviewed),
        *_readable(names.HOST_ENDPOINT, names.SYSTEM_NAMESPACE, everybody),
        *_readable(CLIENT_CA.name, CLIENT_CA.namespace, account),
        *(
            _cluster_role(f"federation:aggregate-to-{role}", rules, aggregated_to=role)
            for role, rules in tenant_rules.items()
        ),
    ]


def definitions() -> list[Object]:
    """Return the CustomResourceDefinitions of our kinds."""
    return crd_manifests()


_PARTS = ("", "/status", "/scale", "/finalizers")


def account_rules() -> list[Object]:
    """Return the rules of the account's ClusterRole."""
    ours: dict[str, list[str]] = {}
    for manifest in crd_manifests():
        plural = manifest["spec"]["names"]["plural"]
        ours.setdefault(manifest["spec"]["group"], []).extend(
            (plural, f"{plural}/status", f"{plural}/scale", f"{plural}/finalizers")
        )
    acting = {(each.group, each.plural) for each in ACTING}
    # What acts on the host is held by finalizer and never created or removed by the account.
    verbs = {True: (*_READ, "patch", "update"), False: _WRITE}
    federated = [
        _rule(group, [f"{plural}{part}" for plural in found for part in _PARTS], verbs[is_acting])
        for group, plurals in sorted(_federated().items())
        for is_acting in (False, True)
        if (found := [plural for plural in plurals if ((group, plural) in acting) is is_acting])
    ]
    policies = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    mutating = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
    webhooks = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    return [
        *(_rule(group, plurals, _WRITE) for group, plurals in sorted(ours.items())),
        *federated,
        _rule(CRDS.group, (CRDS.plural,), _WRITE),
        _rule(CONTROLLER_REVISIONS.group, (CONTROLLER_REVISIONS.plural, REPLICA_SETS.plural), _WRITE),
        _rule(KUEUE_GROUP, ("admissionchecks", "multikueueconfigs", "workloads"), _READ),
        _rule(KUEUE_GROUP, ("workloads/status",), ("patch",)),
        _rule("", ("events",), ("create", "patch")),
        _rule("", ("nodes",), _READ),
        _rule("coordination.k8s.io", ("leases",), ("create", "get", "update")),
        _rule(_ADMISSION, (*policies, *mutating, *webhooks), _READ),
        _rule(_ADMISSION, webhooks, ("create", "patch")),
        _rule("authentication.k8s.io", ("tokenreviews",), ("create",)),
        _rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
        {
            **_rule("", ("users",), ("impersonate",)),
            "resourceNames": list(names.REVIEWERS),
        },
        {"nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/version", "/readyz"], "verbs": ["get"]},
    ]


def _federated() -> dict[str, list[str]]:
    """Return the plurals of the kinds that are federated by default, by group."""
    found: dict[str, list[str]] = {}
    claims = (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
    for resource in (*(from_config(config).resource for config in default_type_configs()), *claims):
        found.setdefault(resource.group, []).append(resource.plural)
    return {group: sorted(plurals) for group, plurals in sorted(found.items())}


def _readable(config_map: str, namespace: str, reader: Object) -> tuple[Object, Object]:
    """Return the Role that lets a subject read one ConfigMap, and its binding."""
    name = f"federation:{config_map}"
    role = _object(ROLES.api_version, "Role", name, namespace=namespace)
    binding = _object(ROLES.api_version, "RoleBinding", name, namespace=namespace)
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    return (
        {**role, "rules": [{**_rule("", ("configmaps",), ("get",)), "resourceNames": [config_map]}]},
        {**binding, "roleRef": reference, "subjects": [reader]},
    )


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Object:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _object(api_version: str, kind: str, name: str, *, namespace: str = "") -> Object:
    metadata: Object = {"name": name, "labels": dict(LABELS)}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _cluster_role(name: str, rules: Sequence[Mapping[str, Any]], *, aggregated_to: str = "") -> Object:
    role = _object(CLUSTER_ROLES.api_version, "ClusterRole", name)
    if aggregated_to:
        role["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{aggregated_to}"] = "true"
    return {**role, "rules": [dict(rule) for rule in rules]}


def _binding(role: str, *subjects: Object) -> Object:
    return {
        **_object(CLUSTER_ROLE_BINDINGS.api_version, "ClusterRoleBinding", role),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }
