"""The workloads that autoscalers of a simulated member scale. Annotations set the load; `loads.py` measures pods.

`federation/controllers/horizontalautoscaler` decides and scales.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import compile_label_selector, parse_label_selector
from federation.controllers.horizontalautoscaler.scaletargets import Scale
from federation.planning.autoscaling.measurements import Measurements
from federation.planning.autoscaling.podmetrics import Sample
from federation.runtime.informer import Informer
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.loads import has_load, measure_pods

SCALER_MANAGER = "kube-controller-manager"
"""The field manager of replicas that an autoscaler sets."""


class LoadedWorkloads:
    """The workloads of one member that can be scaled. `by_kind` has their informers by group and kind."""

    def __init__(self, by_kind: Mapping[tuple[str, str], Informer], pods: Informer, clock: Clock) -> None:
        self._by_kind = by_kind
        self._pods = pods
        self._clock = clock

    async def wait_synced(self) -> None:
        """Wait until the pods are cached."""
        await self._pods.wait_synced()

    def is_responsible(self, autoscaler: Object) -> bool:  # noqa: ARG002  # an interface's signature
        """Return True: nothing else acts on the autoscalers of a simulated member."""
        return True

    async def find(self, autoscaler: Object) -> Scale | None:
        """Return the scale of the target, None without one."""
        reference = autoscaler["spec"]["scaleTargetRef"]
        group = reference.get("apiVersion", "").rpartition("/")[0]
        informer = self._by_kind.get((group, reference["kind"]))
        found = informer.get(autoscaler["metadata"]["namespace"], reference["name"]) if informer is not None else None
        return None if informer is None or found is None else Scale.of(informer.resource, found)

    async def measure(self, scale: Scale, metrics: Sequence[Mapping[str, Any]]) -> Measurements:  # noqa: ARG002  # an interface's signature
        """Return the active pods of the target, and their metrics if it has a load."""
        pods = self.pods_of(scale.target)
        try:
            found = measure_pods(scale.target, pods, self._clock.now())
        except ConfigurationError as error:
            return Measurements([Sample(pod) for pod in pods], problem=str(error))
        problem = "" if has_load(scale.target) else "the target has no annotation with a load"
        return Measurements([Sample(pod, found.get(pod["metadata"]["name"])) for pod in pods], problem=problem)

    def loaded(self) -> Iterator[Object]:
        """Yield the workloads with a load."""
        for informer in list(self._by_kind.values()):
            yield from filter(has_load, informer.list())

    def pods_of(self, target: Object) -> list[Object]:
        """Return the active pods that the selector of the target's scale matches."""
        text = (target.get("status") or {}).get("labelSelector") or ""
        selector = parse_label_selector(text) if text else compile_label_selector(target["spec"].get("selector"))
        found = self._pods.list(target["metadata"]["namespace"])
        return [pod for pod in found if podsof.is_active(pod) and selector.matches(pod["metadata"].get("labels") or {})]
