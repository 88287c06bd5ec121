"""Admission of users' writes to the kinds that the control plane writes.

Sync writes the template of a federated object to members with the federation's own rights. A user therefore needs the
verb `federate` on the resource, namespace and name of the template, before and after an update. The plugin marks the
object as written by hand, so that sync delivers it without a source object. Only the control plane writes statuses,
reports, and its records in annotations, such as what an object pays, which revisions are approved, and what the guard
holds: quotas, queues, waves and holds limit what is written by hand, too. A new object starts with the claim on
nothing, so that its first delivery waits for the scheduler.

Decision: docs/decisions/0268-records-are-kept-by-admission.md
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import template_problem
from federation.api.resources import (
    CLUSTER_COLLECTED_STATUSES,
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_PROPAGATED_VERSIONS,
    COLLECTED_STATUSES,
    FEDERATED_OBJECTS,
    PROPAGATED_VERSIONS,
)
from federation.apimachinery.errors import Forbidden, cause, invalid
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.planning.accounts.claim import CLAIM, NOTHING_YET
from federation.planning.federatedobject.federatedtemplate import FEDERATED_ANNOTATIONS

FEDERATED = (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS)
REPORTS = (COLLECTED_STATUSES, CLUSTER_COLLECTED_STATUSES, PROPAGATED_VERSIONS, CLUSTER_PROPAGATED_VERSIONS)
"""Kinds in which the control plane reports; only it writes them."""
FEDERATE = "federate"
"""The verb for delivering an object to members with the federation's rights."""
_WISHES = (FEDERATED_ANNOTATIONS - {names.AUTHORS, names.WRITTEN_ALLOCATIONS}) | {
    names.INTERNAL_ORPHAN,
    names.INTERNAL_CONFLICT_RESOLUTION,
    names.INTERNAL_CLUSTERS_TO_ADOPT,
    names.ENABLE_FOLLOWER_SCHEDULING,
    names.POD_UNSCHEDULABLE_THRESHOLD,
    names.PENDING_CONTROLLERS,
}
"""Annotations that a user may write by hand, as on a source or in a policy."""
_DOMAIN = names.DOMAIN.removesuffix("/")
_TEMPLATE = "spec.template"
FindResource = Callable[[str, str], Resource | None]
"""Returns the resource that the host serves for an apiVersion and kind."""


class FederatedObjectAdmission:
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state."""

    resources = frozenset(resource.group_resource for resource in (*FEDERATED, *REPORTS))

    def __init__(self, find: FindResource) -> None:
        self._find = find

    def mutate(self, request: AdmissionRequest) -> Object:
        """Mark a federated object as written by hand, with the control plane's records as they are stored.

        `validate` decides whether the requester may do that.
        """
        obj = request.obj or {}
        if request.subresource or request.resource not in FEDERATED:
            return obj
        metadata = obj["metadata"]
        annotations = metadata.get("annotations")
        if isinstance(annotations, Mapping | None):
            stored = (request.old or {"metadata": {}})["metadata"].get("annotations") or {}
            wished = {name: value for name, value in (annotations or {}).items() if not _is_record(name)}
            kept = {name: value for name, value in stored.items() if _is_record(name)}
            _warn(request, annotations or {}, kept)
            if request.resource.namespaced and stored.get(names.HAND_WRITTEN) != "true":
                # It has nothing before the scheduler grants it: otherwise it would count as what ran before a quota.
                kept = {**CLAIM.entry(NOTHING_YET), **kept}
            metadata["annotations"] = {**wished, **kept, names.HAND_WRITTEN: "true"}
        return obj

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Forbidden unless the requester may deliver both templates, Invalid for a wrong template."""
        if request.resource in REPORTS or request.subresource:
            raise forbidden(request, "only the control plane writes it", field=request.subresource)
        obj = request.obj or {}
        self._check_permission(request, access, self._check_template(request, obj))
        if (obj["metadata"].get("annotations") or {}).get(names.HAND_WRITTEN) != "true":
            raise forbidden(request, f"a webhook removed the annotation {names.HAND_WRITTEN}", field="metadata")
        if request.old is not None and (check := self._check_of(request, _template(request.old))) is not None:
            # Otherwise a user could remove an object from members that another user delivered.
            self._check_permission(request, access, check)

    def _check_template(self, request: AdmissionRequest, obj: Object) -> AccessCheck:
        """Return the permission that the template needs; Invalid when it does not fit the federated object."""
        problem, template = template_problem(obj), _template(obj)
        if problem:
            raise _invalid(request, _TEMPLATE, problem)
        check = self._check_of(request, template)
        resource = self._find(str(template.get("apiVersion", "")), str(template.get("kind", "")))
        if check is None or resource is None:
            raise _invalid(request, f"{_TEMPLATE}.kind", "the host serves no such apiVersion and kind")
        if resource.namespaced is not request.resource.namespaced:
            wanted = next(federated.kind for federated in FEDERATED if federated.namespaced is resource.namespaced)
            raise _invalid(request, f"{_TEMPLATE}.kind", f"{resource.kind} belongs in a {wanted}: the scopes differ")
        if (template["metadata"].get("namespace") or "") != request.namespace:
            text = f'must be "{request.namespace}", the namespace of the federated object'
            raise _invalid(request, f"{_TEMPLATE}.metadata.namespace", text)
        return check

    def _check_of(self, request: AdmissionRequest, template: Mapping[str, Any]) -> AccessCheck | None:
        """Return the permission that a template needs; None when it has no apiVersion, kind or name."""
        api_version, kind = str(template.get("apiVersion") or ""), str(template.get("kind") or "")
        metadata = template.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if not api_version or not kind or not isinstance(name, str):
            return None
        resource = self._find(api_version, kind)
        if resource is None:
            return AccessCheck(FEDERATE, api_version.rpartition("/")[0], "*", namespace=request.namespace, name=name)
        namespace = request.namespace if resource.namespaced else ""
        return AccessCheck(FEDERATE, resource.group, resource.plural, namespace=namespace, name=name)

    def _check_permission(self, request: AdmissionRequest, access: Decide, check: AccessCheck) -> None:
        if access(check).is_allowed:
            return
        scope = f'in the namespace "{check.namespace}"' if check.namespace else "at the cluster scope"
        user = request.user.get("username", "")
        text = (
            f'User "{user}" cannot {FEDERATE} resource "{check.resource}" in API group "{check.group}" {scope}; '
            f"write the object itself, which the control plane federates, or get the verb {FEDERATE} on its resource"
        )
        raise forbidden(request, text, field=_TEMPLATE)


def _is_record(name: str) -> bool:
    """Return whether only the control plane writes an annotation of a federated object."""
    return name.partition("/")[0].endswith(_DOMAIN) and "/" in name and name not in _WISHES


def _warn(request: AdmissionRequest, sent: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    others = {name for name, value in sent.items() if _is_record(name) and kept.get(name) != value}
    for name in sorted(others - {names.HAND_WRITTEN, names.AUTHORS, CLAIM.name}):
        text = f"metadata.annotations[{name}]: only the control plane writes it; the stored value is kept"
        if text not in request.warnings:
            request.warnings.append(text)


def _template(obj: Object) -> Mapping[str, Any]:
    template = (obj.get("spec") or {}).get("template")
    return template if isinstance(template, Mapping) else {}


def forbidden(request: AdmissionRequest, text: str, *, field: str) -> Forbidden:
    """Return the 403 of a write; `field` names the cause, "" for none."""
    resource = request.resource
    details = {"name": request.name, "group": resource.group, "kind": resource.plural}
    return Forbidden(
        f'{resource.group_resource} "{request.name}" is forbidden: {text}',
        details={**details, "causes": [cause("FieldValueForbidden", text, field)] if field else []},
    )


def _invalid(request: AdmissionRequest, field: str, text: str) -> Exception:
    causes = [cause("FieldValueInvalid", f"Invalid value: {text}", field)]
    return invalid(request.resource.kind, request.resource.group, request.name, causes)
