"""Find the clusters with pods of a workload: for the message that refuses `kubectl logs` and `exec` on the host."""

from collections.abc import Sequence
from typing import Any

from federation.apimachinery.selectors import format_label_selector
from federation.apiserver.http.podcommands import PodLocation
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.federatedobjects import FederatedObjects

_KINDS = frozenset({"CloneSet", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Service"})


class PodLocations:
    """Finds workloads among the cached federated objects."""

    def __init__(self, objects: FederatedObjects) -> None:
        self._objects = objects

    def find(self, namespace: str, selector: str, pod: str) -> Sequence[PodLocation]:
        """Return the workloads with this selector, or with a pod of this name; by kind and name."""
        found = []
        for federated in self._objects.list_namespace(namespace) if namespace else ():
            template = (federated.get("spec") or {}).get("template") or {}
            name, type_ = (template.get("metadata") or {}).get("name") or "", self._objects.type_of(federated)
            if type_ is None or template.get("kind") not in _KINDS:
                continue
            if _selector(template) == selector if selector else pod.startswith(f"{name}-"):
                resource = type_.resource
                clusters = sorted(effective_placement(federated))
                found.append(
                    PodLocation(resource.group, resource.version, resource.plural, resource.kind, name, clusters)
                )
        return sorted(found, key=lambda place: (place.kind, place.name))


def _selector(template: dict[str, Any]) -> str:
    """Return the selector of a workload or Service as kubectl sends it."""
    selector = (template.get("spec") or {}).get("selector") or {}
    return format_label_selector({"matchLabels": selector} if template.get("kind") == "Service" else selector)
