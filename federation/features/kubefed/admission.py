"""Admission of KubeFed's kinds: they allow no user more than the native kinds do.

The control plane writes the native object and its policies as the author of the federated object, when the author is
gone. So he needs the permissions to create and to update the object and the policies of that name, `delete` for an
empty list of clusters, and `escalate` for a role. The author of a ReplicaSchedulingPreference needs permission to
update its target and the target's policy. What the control plane will do is tried as a dry run of the author, so that
refusals of the host's quotas and admission are reported at once. A changed template is also submitted to the host's
admission by a user without rights, as overrides are.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from federation.admission.federatedobjects import forbidden
from federation.api import names
from federation.api.kubefedkinds import (
    FEDERATED_KINDS,
    FEDERATED_NAMESPACES,
    REPLICA_PREFERENCES,
    FederatedKind,
)
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.errors import AlreadyExists, BadRequest, Invalid, cause, invalid
from federation.apimachinery.resources import CLUSTER_ROLES, NAMESPACES, REPLICA_SETS, Object, Resource
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.admission.plugins import ValidatingPlugin
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide
from federation.client.client import Client
from federation.features.kubefed.names import KUBEFED_MANAGER
from federation.planning.kubefed.nativeform import pointer_of, policy_kinds, policy_name, to_native
from federation.runtime.onbehalf import apply_for

_Permission = tuple[tuple[str, ...], AccessCheck]
"""Verbs of which one must be allowed, and on what."""
_CHANGE = ("update", "patch")
_IDENTITY = frozenset({"/kind", "/apiVersion", "/metadata/name", "/metadata/namespace", "/metadata/generateName"})
_NOT_REVIEWED = (CLUSTER_ROLES, NAMESPACES, REPLICA_SETS)
"""A role is refused to a user without rights, a namespace that exists is only labelled, and the user without rights may
create only kinds with a shipped FederatedTypeConfig."""


class KubeFedAdmission(ValidatingPlugin):
    """An `AdmissionPlugin`. It lives as long as the API server and keeps no state; `client` makes dry runs."""

    resources = frozenset(
        resource.group_resource
        for resource in (REPLICA_PREFERENCES, *(kind.resource for kind in FEDERATED_KINDS.values()))
    )

    def __init__(self, client: Client) -> None:
        self._client = client

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Raise Forbidden without the permissions on what would be written, Invalid for what cannot work."""
        obj, old = request.obj or {}, request.old
        if request.subresource or (old is not None and _decisive(old) == _decisive(obj)):
            return
        if request.resource == REPLICA_PREFERENCES:
            for each in (obj, *([old] if old is not None else [])):
                _require(request, access, _checks_of_preference(each, request.namespace))
            return
        kind = FEDERATED_KINDS[request.resource.kind]
        if causes := list(_problems(obj, kind, request.namespace)):
            raise invalid(request.resource.kind, request.resource.group, request.shown_name, causes)
        _require(request, access, _checks(obj, kind, request.namespace))
        native = to_native(obj, kind)
        if kind.target.namespaced:
            native["metadata"]["namespace"] = request.namespace
        has_changed = old is None or _template(old) != _template(obj)
        await self._try(request, kind.target, native, is_reviewed=has_changed and kind.target not in _NOT_REVIEWED)

    async def _try(self, request: AdmissionRequest, target: Resource, native: Object, *, is_reviewed: bool) -> None:
        """Raise what the host answers if the native object is applied: as a user without rights, and as the author."""
        nobody: Object = {"username": names.OVERRIDE_POLICY_USER, "groups": [AUTHENTICATED]}
        try:
            if is_reviewed:
                with contextlib.suppress(AlreadyExists):  # an API server over HTTP answers this after admission
                    await self._client.review(target, native, user=nobody)
            if target != NAMESPACES:
                await apply_for(
                    [request.user], self._client, target, native, field_manager=KUBEFED_MANAGER, dry_run=True
                )
        except BadRequest as error:
            causes = [cause("FieldValueInvalid", f"Invalid value: {error.message}", "spec.template")]
            raise invalid(request.resource.kind, request.resource.group, request.shown_name, causes) from error
        except Invalid as error:
            causes = [
                {**each, "field": f"spec.template.{each.get('field', '')}".rstrip(".")}
                for each in error.details.get("causes") or ()
            ]
            raise invalid(request.resource.kind, request.resource.group, request.shown_name, causes) from error


def _decisive(obj: Object) -> Any:
    annotations = obj["metadata"].get("annotations") or {}
    return obj.get("spec"), annotations.get(names.KUBEFED_ORPHAN)


def _template(obj: Object) -> Any:
    return (obj.get("spec") or {}).get("template")


def _problems(obj: Object, kind: FederatedKind, namespace: str) -> Iterator[dict[str, str]]:
    name = obj["metadata"].get("name")
    if not name:
        yield cause("FieldValueRequired", "Required value: the native object has the same name", "metadata.name")
    elif kind.resource == FEDERATED_NAMESPACES and name != namespace:
        text = f'Invalid value: "{name}": must be "{namespace}", the namespace that it is in'
        yield cause("FieldValueInvalid", text, "metadata.name")
    for index, entry in enumerate((obj.get("spec") or {}).get("overrides") or ()):
        for place, patch in enumerate(entry.get("clusterOverrides") or ()):
            if pointer_of(patch["path"]) in _IDENTITY:
                field = f"spec.overrides[{index}].clusterOverrides[{place}].path"
                text = f'Invalid value: "{patch["path"]}": the identity of an object is the same in all clusters'
                yield cause("FieldValueInvalid", text, field)


def _checks(obj: Object, kind: FederatedKind, namespace: str) -> Iterator[_Permission]:
    name, target = obj["metadata"]["name"], kind.target
    if kind.resource == FEDERATED_NAMESPACES:
        yield _permission(_CHANGE, target, "", name)
        yield _permission(_CHANGE, PROPAGATION_POLICIES, namespace)
        return
    spec = obj.get("spec") or {}
    propagation, override = policy_kinds(kind)
    written = [(target, name), (propagation, policy_name(obj, kind))]
    if spec.get("overrides"):
        written.append((override, policy_name(obj, kind)))
    for resource, each in written:
        yield _permission(("create",), resource, namespace, each)
        yield _permission(_CHANGE, resource, namespace, each)
    if (spec.get("placement") or {}).get("clusters") == []:
        yield _permission(("delete",), target, namespace, name)
    if target == CLUSTER_ROLES:
        yield _permission(("escalate",), target, "", name)


def _checks_of_preference(preference: Object, namespace: str) -> Iterator[_Permission]:
    kind, name = FEDERATED_KINDS[preference["spec"]["targetKind"]], preference["metadata"].get("name") or ""
    yield _permission(_CHANGE, kind.resource, namespace, name)
    yield _permission(_CHANGE, kind.target, namespace, name)
    yield _permission(_CHANGE, PROPAGATION_POLICIES, namespace, policy_name(preference, kind))


def _permission(verbs: tuple[str, ...], resource: Resource, namespace: str, name: str = "") -> _Permission:
    return verbs, AccessCheck("", resource.group, resource.plural, namespace=namespace, name=name)


def _require(request: AdmissionRequest, access: Decide, permissions: Iterable[_Permission]) -> None:
    """Raise Forbidden for the first permission that the requester lacks."""
    for verbs, check in permissions:
        if any(access(check._replace(verb=verb)).is_allowed for verb in verbs):
            continue
        resource = f"{check.resource}.{check.group}" if check.group else check.resource
        scope = f'in the namespace "{check.namespace}"' if check.namespace else "at the cluster scope"
        named = f' "{check.name}"' if check.name else ""
        text = (
            f'User "{request.user.get("username", "")}" cannot {verbs[0]} {resource}{named} {scope}, which the control'
            f" plane would {verbs[0]} for this {request.resource.kind}; get that permission"
        )
        raise forbidden(request, text, field="")
