"""Admission of Projects: one project per namespace, and no author who gives more than he has.

The control plane writes what a Project makes as its author, when he is gone. So he needs the rights to write it, and
each of the roles that he gives is tried as a dry run, in which the API server compares it with his own. What he takes
out of a Project he could delete himself; a namespace that he takes out may be in all clusters from then on.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from federation.admission.federatedobjects import forbidden
from federation.admission.hostreader import HostReader
from federation.api.resources import FEDERATED_CLUSTERS, PROJECTS
from federation.apimachinery.errors import AlreadyExists, Forbidden, cause, invalid
from federation.apimachinery.resources import CLUSTER_ROLE_BINDINGS, NAMESPACES, ROLE_BINDINGS, Object, Resource
from federation.apimachinery.selectors import SelectorError, compile_label_selector
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.features.projects.rules import RIGHTS, Made, made_by
from federation.planning.projects.projectindex import compile_project

_SHOWN_MAX = 10
_READ = ("get", "list", "watch")


class ProjectAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset({PROJECTS.group_resource})

    def __init__(self, host: HostReader) -> None:
        self._host = host

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Invalid for a namespace that cannot be the project's, Forbidden for what the author may not give."""
        obj = request.obj or {}
        if not request.changes_spec:
            return
        causes = [*_selector_causes(obj["spec"]), *await self._taken(request, access)]
        if causes:
            raise invalid(PROJECTS.kind, PROJECTS.group, request.shown_name, causes)
        clusters = await self._clusters(obj)
        made = list(made_by(_named(obj, request), obj["spec"]["namespaces"], clusters))
        made = [each for each in made if self._host.acts_as_users or each.resource not in RIGHTS]
        self._check_rights(request, obj, made, access)
        if self._host.acts_as_users:  # otherwise the members get no roles
            await self._check_given(request, made)

    async def _taken(self, request: AdmissionRequest, access: Decide) -> list[Object]:
        """Return the causes for namespaces of other projects; who may not read these learns no name."""
        causes, wanted = [], (request.obj or {})["spec"]["namespaces"]
        for other in await self._host.list_objects(PROJECTS):
            name = other["metadata"]["name"]
            has = compile_project(other).namespaces
            if name == request.name or has.isdisjoint(wanted):
                continue
            shown = f"project {name}" if access(_check("get", PROJECTS, name=name)).is_allowed else "another project"
            for index, namespace in enumerate(wanted):
                if namespace in has:
                    text = f'Invalid value: "{namespace}": the namespace belongs to {shown}; take it out of that first'
                    causes.append(cause("FieldValueInvalid", text, f"spec.namespaces[{index}]"))
        return causes

    async def _clusters(self, obj: Object) -> list[str]:
        project = compile_project(obj)
        found = [each["metadata"] for each in await self._host.list_objects(FEDERATED_CLUSTERS)]
        return [each["name"] for each in found if project.has(each["name"], each.get("labels") or {})]

    def _check_rights(self, request: AdmissionRequest, obj: Object, made: list[Made], access: Decide) -> None:
        """Raise Forbidden with the rights that the author lacks to write it all himself."""
        checks = [*_cluster_checks(obj["spec"]), *_write_checks(obj["spec"], made), *_removal_checks(request, obj)]
        lacking = list(
            dict.fromkeys((field, _to_text(check)) for field, check in checks if not access(check).is_allowed)
        )
        if not lacking:
            return
        shown = "; ".join(text for _, text in lacking[:_SHOWN_MAX])
        more = f"; and {len(lacking) - _SHOWN_MAX} more" if len(lacking) > _SHOWN_MAX else ""
        user = request.user.get("username", "")
        text = f'User "{user}" cannot {shown}{more}: a project gives nothing that its author does not have'
        raise forbidden(request, text, field=lacking[0][0])

    async def _check_given(self, request: AdmissionRequest, made: list[Made]) -> None:
        """Raise Forbidden for a role that gives more than the author holds."""
        existing = {each["metadata"]["name"] for each in await self._host.list_objects(NAMESPACES)}
        seen = set()
        for field, resource, obj in made:
            if resource != ROLE_BINDINGS:
                continue  # the role for clusters has what `_cluster_checks` asked for
            namespace, role = obj["metadata"]["namespace"], obj["roleRef"]["name"]
            # In a namespace that does not exist yet, only rights in all namespaces count.
            where = namespace if namespace in existing else ""
            if (where, role) in seen:
                continue
            seen.add((where, role))
            tried = obj if where else _everywhere(obj)
            try:
                with contextlib.suppress(AlreadyExists):
                    await self._host.review(ROLE_BINDINGS if where else CLUSTER_ROLE_BINDINGS, tried, request.user)
            except Forbidden as error:
                text = f"role {role} in namespace {namespace}: {error.message}"
                raise forbidden(request, text, field=field) from error


def _named(obj: Object, request: AdmissionRequest) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "name": request.name or "new", "uid": request.uid or "new"}}


def _everywhere(binding: Object) -> Object:
    metadata = {"name": f"{binding['metadata']['name']}-tried"}
    identity = {"apiVersion": CLUSTER_ROLE_BINDINGS.api_version, "kind": CLUSTER_ROLE_BINDINGS.kind}
    return {**binding, **identity, "metadata": metadata}


def _check(verb: str, resource: Resource, namespace: str = "", name: str = "") -> AccessCheck:
    return AccessCheck(verb, resource.group, resource.plural, "", namespace, name)


def _cluster_checks(spec: Mapping[str, Any]) -> Iterator[tuple[str, AccessCheck]]:
    """Yield the rights to see the clusters: who gives them to others has to see them."""
    clusters = spec.get("clusters") or {}
    if clusters.get("selector") is not None:
        for verb in _READ:
            yield "spec.clusters.selector", _check(verb, FEDERATED_CLUSTERS)
    for index, name in enumerate(clusters.get("names") or ()):
        for verb in _READ:
            yield f"spec.clusters.names[{index}]", _check(verb, FEDERATED_CLUSTERS, name=name)


def _write_checks(spec: Mapping[str, Any], made: list[Made]) -> Iterator[tuple[str, AccessCheck]]:
    for each in made:
        resource, namespace, name = each.key
        is_namespace = resource == NAMESPACES
        where = name if is_namespace else namespace
        yield each.field, _check("create", resource, "" if is_namespace else namespace)
        yield each.field, _check("patch", resource, where, name)
        if is_namespace and spec.get("namespaceDeletion") == "Delete":
            yield "spec.namespaceDeletion", _check("delete", resource, where, name)


def _removal_checks(request: AdmissionRequest, obj: Object) -> Iterator[tuple[str, AccessCheck]]:
    """Yield the rights to take out what an update takes out: quotas, roles, and the clusters as a limit."""
    if request.old is None:
        return
    before, after = (_named(each, request) for each in (request.old, obj))
    if set(before["spec"]["namespaces"]) - set(after["spec"]["namespaces"]):
        for verb in _READ:
            yield "spec.namespaces", _check(verb, FEDERATED_CLUSTERS)
    kept = {each.key for each in made_by(after, after["spec"]["namespaces"], ())}
    for each in made_by(before, before["spec"]["namespaces"], ()):
        if each.key not in kept and each.resource != NAMESPACES:
            resource, namespace, name = each.key
            yield each.field, _check("delete", resource, namespace, name)


def _to_text(check: AccessCheck) -> str:
    resource = f"{check.resource}.{check.group}" if check.group else check.resource
    name = f' "{check.name}"' if check.name else ""
    where = f' in the namespace "{check.namespace}"' if check.namespace and check.resource != "namespaces" else ""
    return f"{check.verb} {resource}{name}{where}"


def _selector_causes(spec: Mapping[str, Any]) -> Iterator[Object]:
    try:
        compile_label_selector((spec.get("clusters") or {}).get("selector"))
    except SelectorError as error:
        yield cause("FieldValueInvalid", f"Invalid value: {error}", "spec.clusters.selector")
