"""Whether a federated object may be delivered: its template must follow from a source object of the host. Pure.

Admission protects federated objects from users. This check also covers objects that were stored before, or by other
means: what is delivered with the federation's rights is an object that the host accepted under the same kind, scope,
namespace and name. An object that an administrator wrote by hand has no source; admission marked it.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import Ending, FederatedType
from federation.apimachinery.ownerreferences import controller_of
from federation.planning.federatedobject.eligibility import exclusion
from federation.planning.federatedobject.naming import federated_object_name


def scope_problem(federated: Mapping[str, Any], type_: FederatedType) -> str:
    """Return why the template's scope or namespace differs from the federated object's, "" when they are equal."""
    namespace = federated["metadata"].get("namespace") or ""
    if type_.resource.namespaced is not bool(namespace):
        return f"spec.template.kind: the scope of {type_.resource.kind} is not that of the federated object"
    if (federated["spec"]["template"]["metadata"].get("namespace") or "") != namespace:
        return "spec.template.metadata.namespace: must be the namespace of the federated object"
    return ""


def version_problem(federated: Mapping[str, Any], type_: FederatedType) -> str:
    """Return why a template cannot be delivered in the version of its type, "" when it can."""
    version, wanted = federated["spec"]["template"].get("apiVersion"), type_.resource.api_version
    if version == wanted:
        return ""
    return (
        f"spec.template.apiVersion: {type_.resource.kind} is federated in {wanted} by FederatedTypeConfig {type_.name},"
        f" and the template is {version}; write it in {wanted}"
    )


def is_hand_written(federated: Mapping[str, Any]) -> bool:
    """Return whether admission marked the object as written by a user with permission."""
    return ((federated.get("metadata") or {}).get("annotations") or {}).get(names.HAND_WRITTEN) == "true"


def is_from(federated: Mapping[str, Any], source: Mapping[str, Any]) -> bool:
    """Return whether the federated object is of this source and not of an earlier one with the same name.

    One without an owner counts: the garbage collector removes the reference when a source is deleted with
    --cascade=orphan.
    """
    owner = controller_of(federated)
    return owner is None or owner.get("uid") == source["metadata"].get("uid")


def is_wanted(federated: Mapping[str, Any], type_: FederatedType, source: Mapping[str, Any]) -> bool:
    """Return whether the source still asks for the federated object, so that a deletion of it alone is undone.

    To end the delivery on purpose, delete the source, exclude it from federation, or delete the FederatedTypeConfig.
    """
    if type_.ending in (Ending.ORPHAN, Ending.REMOVE) or source["metadata"].get("deletionTimestamp"):
        return False
    owner, name = controller_of(federated), source["metadata"]["name"]
    is_owner = owner is not None and owner.get("uid") == source["metadata"].get("uid")
    is_regular = federated["metadata"]["name"] == federated_object_name(name, type_.name)
    return is_owner and is_regular and not exclusion({"kind": type_.resource.kind, **source})


def source_problem(federated: Mapping[str, Any], type_: FederatedType, source: Mapping[str, Any] | None) -> str:
    """Return why the federated object does not follow from its source, "" when it does.

    `source` is the host's object of the template's kind, namespace and name, None when there is none. The caller has
    checked that the template has a name and is of the type.
    """
    name = federated["spec"]["template"]["metadata"]["name"]
    if federated["metadata"]["name"] != federated_object_name(name, type_.name):
        return f'metadata.name: the federated object of {type_.resource.kind} "{name}" has another name'
    if source is None:
        return f'spec.template: the host has no {type_.resource.kind} "{name}"'
    owner = controller_of(federated)
    if owner is None or owner.get("uid") != source["metadata"].get("uid"):
        return f'metadata.ownerReferences: {type_.resource.kind} "{name}" is not the controller'
    return ""
