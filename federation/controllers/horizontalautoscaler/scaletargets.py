"""The interface between autoscalers and their targets: the scale of a target, and the metrics of its pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from federation.apimachinery.resources import Object, Resource
from federation.planning.autoscaling.measurements import Measurements


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource of a target: desired and present replicas."""

    resource: Resource
    target: Object
    replicas: int
    present: int

    @classmethod
    def of(cls, resource: Resource, target: Object) -> "Scale":
        """Return the scale of an object with the usual paths."""
        spec, status = target.get("spec") or {}, target.get("status") or {}
        replicas: Any = spec.get("replicas")
        return cls(resource, target, 1 if replicas is None else int(replicas), int(status.get("replicas") or 0))


class ScaleTargets(Protocol):
    """The targets that the autoscalers of one cluster can have."""

    async def wait_synced(self) -> None:
        """Wait until the caches that the other methods read are complete."""
        ...

    def is_responsible(self, autoscaler: Object) -> bool:
        """Return False for an autoscaler that something else acts on."""
        ...

    async def find(self, autoscaler: Object) -> Scale | None:
        """Return the scale of the target, None if the target does not exist."""
        ...

    async def measure(self, scale: Scale, metrics: Sequence[Mapping[str, Any]]) -> Measurements:
        """Return the pods of the target and the metrics of its autoscaler; what does not answer is a `problem`."""
        ...
