"""The rights that users of a namespace need on the kinds that their objects select.

Policies and suspensions act on objects of a kind with the federation's rights. Whoever writes one needs the verb
`update` or `patch` on each kind that it selects, in its namespace. An object that names a policy in a label needs no
such check: the author of the label may update the object.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.admission.federatedobjects import FindResource, forbidden
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, Decide

_VERBS = ("update", "patch")


def check_selected(
    request: AdmissionRequest, access: Decide, find: FindResource, selectors: Sequence[Mapping[str, Any]], field: str
) -> None:
    """Raise Forbidden unless the requester may update every kind that the selectors of the field name.

    Warns about selectors that select nothing, because their kind has no namespace.
    """
    for index, entry in enumerate(selectors):
        if _has_no_namespace(find, entry):
            title = f"{entry.get('kind')} is a kind without a namespace"
            text = f"{field}[{index}]: {title}, of which an object in a namespace selects nothing"
            request.warnings.append(f"{text}; use the cluster-wide kind of this {request.resource.kind}")
        check = _check_of(find, entry, request.namespace)
        if check is None or _is_allowed(access, check):
            continue
        qualified = f"{check.resource}.{check.group}" if check.group else check.resource
        text = (
            f'User "{request.user.get("username", "")}" cannot update {qualified} in the namespace'
            f' "{request.namespace}"; get that permission, or select only kinds that you may update'
        )
        raise forbidden(request, text, field=f"{field}[{index}]")


def check_all_kinds(request: AdmissionRequest, access: Decide, field: str) -> None:
    """Raise Forbidden unless the requester may update every kind in the namespace."""
    if _is_allowed(access, AccessCheck("", "*", "*", namespace=request.namespace)):
        return
    text = (
        f'without it every kind is selected, and User "{request.user.get("username", "")}" cannot update all kinds in'
        f' the namespace "{request.namespace}"; list the kinds that you may update'
    )
    raise forbidden(request, text, field=field)


def _is_allowed(access: Decide, check: AccessCheck) -> bool:
    return any(access(check._replace(verb=verb)).is_allowed for verb in _VERBS)


def _has_no_namespace(find: FindResource, selector: Any) -> bool:
    resource = find(str(selector.get("apiVersion") or ""), str(selector.get("kind") or ""))
    return resource is not None and not resource.namespaced


def _check_of(find: FindResource, selector: Any, namespace: str) -> AccessCheck | None:
    """Return the permission for a selector; None for a kind without namespace, which no such object selects."""
    api_version, kind = str(selector.get("apiVersion") or ""), str(selector.get("kind") or "")
    resource = find(api_version, kind)
    if resource is not None and not resource.namespaced:
        return None
    # A kind may be served later, under any plural.
    group, plural = (resource.group, resource.plural) if resource else (api_version.rpartition("/")[0], "*")
    return AccessCheck("", group, plural, namespace=namespace, name=str(selector.get("name") or ""))
