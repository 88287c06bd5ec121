"""The objects that a Project makes, and its problems. Pure.

All of them have the label `names.PROJECT` and are owned by the Project, so the garbage collector removes them with it.
Namespaces are owned only if the Project asks for their deletion.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_RESOURCE_QUOTAS, PROJECTS
from federation.apimachinery.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    Object,
    Resource,
)
from federation.features.projects.names import PROJECT

_RBAC: Final = ROLE_BINDINGS.group
_READ: Final = ("get", "list", "watch")


RIGHTS: Final = (ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
"""What gives rights: it is not made where the control plane cannot act as the author."""


class Made(NamedTuple):
    """An object that a Project makes; `field` is the part of the spec that asks for it."""

    field: str
    resource: Resource
    obj: Object

    @property
    def key(self) -> tuple[Resource, str, str]:
        """Resource, namespace and name."""
        metadata = self.obj["metadata"]
        return self.resource, metadata.get("namespace", ""), metadata["name"]


def made_by(project: Mapping[str, Any], namespaces: Iterable[str], clusters: Iterable[str]) -> Iterator[Made]:
    """Yield what a Project makes in its namespaces, and the role that shows its clusters; namespaces come first."""
    spec, name = project["spec"], project["metadata"]["name"]
    listed = sorted(namespaces)
    deletes = spec.get("namespaceDeletion") == "Delete"
    for each in listed:
        owner = project if deletes else None
        yield Made("spec.namespaces", NAMESPACES, _made(NAMESPACES, name, each, owner=owner))
    limits = (spec.get("quota") or {}).get("perNamespace")
    for each in listed if limits else ():
        quota = _made(FEDERATED_RESOURCE_QUOTAS, name, f"project-{name}", each, owner=project)
        yield Made("spec.quota.perNamespace", FEDERATED_RESOURCE_QUOTAS, {**quota, "spec": {"overall": limits}})
    members = spec.get("members") or ()
    for entry in members:
        for each in listed:
            yield Made("spec.members", ROLE_BINDINGS, _binding(project, entry, each))
    if subjects := list(_subjects(entry for entry in members)):
        role = f"federation:project:{name}"
        shown = {"rules": list(_shown(name, sorted(clusters)))}
        yield Made("spec.clusters", CLUSTER_ROLES, {**_made(CLUSTER_ROLES, name, role, owner=project), **shown})
        reference = {"apiGroup": _RBAC, "kind": CLUSTER_ROLES.kind, "name": role}
        binding = _made(CLUSTER_ROLE_BINDINGS, name, role, owner=project)
        yield Made("spec.members", CLUSTER_ROLE_BINDINGS, {**binding, "roleRef": reference, "subjects": subjects})


def _binding(project: Mapping[str, Any], entry: Mapping[str, Any], namespace: str) -> Object:
    name, role = project["metadata"]["name"], entry["role"]
    made = _made(ROLE_BINDINGS, name, f"project-{name}-{role}", namespace, owner=project)
    reference = {"apiGroup": _RBAC, "kind": CLUSTER_ROLES.kind, "name": role}
    return {**made, "roleRef": reference, "subjects": list(_subjects((entry,)))}


def _subjects(entries: Iterable[Mapping[str, Any]]) -> Iterator[Object]:
    """Yield each subject once, as bindings have them."""
    seen = set()
    for entry in entries:
        for subject in entry.get("subjects") or ():
            key = (subject["kind"], subject.get("namespace", ""), subject["name"])
            if key in seen:
                continue
            seen.add(key)
            group = {} if subject["kind"] == "ServiceAccount" else {"apiGroup": _RBAC}
            yield {**group, **subject}


def _shown(name: str, clusters: list[str]) -> Iterator[Object]:
    """Yield the rules that show the Project and its clusters. A rule without names would show all clusters."""
    yield _rule(PROJECTS, [name])
    if clusters:
        yield _rule(FEDERATED_CLUSTERS, clusters)


def _rule(resource: Resource, shown: list[str]) -> Object:
    where = {"apiGroups": [resource.group], "resources": [resource.plural], "resourceNames": shown}
    return {"verbs": list(_READ), **where}


def _made(
    resource: Resource, project: str, name: str, namespace: str = "", *, owner: Mapping[str, Any] | None
) -> Object:
    metadata: Object = {"name": name, "labels": {PROJECT: project}}
    if namespace:
        metadata["namespace"] = namespace
    if owner is not None:
        identity = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        metadata["ownerReferences"] = [{"apiVersion": PROJECTS.api_version, "kind": PROJECTS.kind, **identity}]
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
