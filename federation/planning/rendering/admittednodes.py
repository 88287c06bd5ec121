"""The nodes that a queue gives the pods of an object: labels and tolerations of the flavours it was admitted to. Pure.

The queue records them in an annotation of the federated object. The scheduler counts the pods as if the object had
them, and the copies in members have them. The template stays as its author wrote it.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.planning.components import written_pod_specs
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.podspec import pod_spec_path
from federation.planning.rendering.names import QUEUE_NODES as _ANNOTATION
from federation.planning.rendering.names import QUEUE_RELEASED
from federation.planning.suspending import is_suspended, without_suspension


class PodNodes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What pods get whose nodeSelector is `where`: more labels of nodes, and tolerations of their taints."""

    where: dict[str, str]
    labels: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []


QUEUE_NODES = AnnotationRecord(_ANNOTATION, list[PodNodes])


def with_admitted_nodes(
    template: Mapping[str, Any], federated: Mapping[str, Any], type_: FederatedType
) -> Mapping[str, Any]:
    """Return the template as the queue lets it run, with what it gave the pods; the same object if it gave nothing."""
    nodes = QUEUE_NODES.of(federated)
    if is_suspended(template) and is_released(federated):
        template = without_suspension(template)
    return _with_nodes(template, nodes, type_) if nodes else template


def is_released(federated: Mapping[str, Any]) -> bool:
    """Return whether the author of an object left it to the queue to end its suspension."""
    return ((federated.get("metadata") or {}).get("annotations") or {}).get(QUEUE_RELEASED) == "true"


def has_own_pod_specs(template: Mapping[str, Any], type_: FederatedType) -> bool:
    """Return whether an object has a pod spec for any of its pods, so that nodes can be given to them."""
    return bool(pod_specs_in(template, type_))


def _with_nodes(template: Mapping[str, Any], nodes: Sequence[PodNodes], type_: FederatedType) -> Mapping[str, Any]:
    changed = deepcopy(dict(template))
    for spec in pod_specs_in(changed, type_):
        selector = spec.get("nodeSelector")
        where = {str(key): str(value) for key, value in selector.items()} if isinstance(selector, Mapping) else {}
        given = next((each for each in nodes if each.where == where), None)
        if given is None:
            continue
        if given.labels:
            spec["nodeSelector"] = {**where, **given.labels}
        if given.tolerations:
            own = spec.get("tolerations")
            own = own if isinstance(own, list) else []
            spec["tolerations"] = [*own, *(each for each in given.tolerations if each not in own)]
    return changed


def pod_specs_in(template: Mapping[str, Any], type_: FederatedType) -> list[Any]:
    """Return the pod specs of an object as they are in it, each once."""
    if type_.components.rules:
        return list({id(spec): spec for spec in written_pod_specs(template, type_.components)}.values())
    try:
        spec = dotpaths.get(template, pod_spec_path(template))
    except OverrideError:
        return []
    return [spec] if isinstance(spec, Mapping) else []
