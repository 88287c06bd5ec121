"""The simulated HorizontalPodAutoscaler controller (autoscaling/v2, resource metrics) with a load from annotations.

The target's annotations `simulator.kubeadmiral.io/cpu-load` and `memory-load` give the use of all its pods together;
the ready pods share it evenly. `scaling` decides. Replicas are written to the scale subresource, by the field manager
that Kubernetes' controller has. Targets are Deployments, StatefulSets, ReplicaSets and CloneSets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery.clock import Clock, from_rfc3339, to_rfc3339
from federation.apimachinery.conditions import set_condition
from federation.apimachinery.errors import ApiError, ConfigurationError
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, REPLICA_SETS, Object, Resource
from federation.client.client import Client
from federation.runtime.controller import Controller, Key, Result
from federation.runtime.informer import Informer
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers import scaling
from federation.simulator.controllers.scaling import Bounds, History, Usage

SCALER_MANAGER = "kube-controller-manager"
"""The field manager of replicas that an autoscaler sets."""
_SYNC_S = 15.0
"""Seconds between two looks at the load, as in Kubernetes."""
_LOADS = {"cpu": names.SIMULATOR_CPU_LOAD, "memory": names.SIMULATOR_MEMORY_LOAD}


@dataclass(frozen=True, slots=True)
class Targets:
    """The informers of kinds that can be scaled, by group and kind."""

    by_kind: Mapping[tuple[str, str], Informer]
    pods: Informer

    def find(self, autoscaler: Object) -> tuple[Resource, Object] | None:
        """Return the target and its resource, None when there is none."""
        reference = autoscaler["spec"]["scaleTargetRef"]
        group = reference.get("apiVersion", "").rpartition("/")[0]
        informer = self.by_kind.get((group, reference["kind"]))
        if informer is None:
            return None
        found = informer.get(autoscaler["metadata"]["namespace"], reference["name"])
        return None if found is None else (informer.resource, found)

    def pods_of(self, target: Object) -> list[Object]:
        """Return the active pods of a workload; those of a Deployment belong to its ReplicaSets."""
        uids = [target["metadata"]["uid"]]
        replica_sets = self.by_kind[REPLICA_SETS.group, REPLICA_SETS.kind].by_index(podsof.BY_OWNER, uids[0])
        uids += [each["metadata"]["uid"] for each in replica_sets]
        owned = (pod for uid in uids for pod in self.pods.by_index(podsof.BY_OWNER, uid))
        return [pod for pod in owned if podsof.is_active(pod)]


class AutoscalerController:
    """Reconciles the HorizontalPodAutoscalers of one member."""

    def __init__(self, client: Client, autoscalers: Informer, targets: Targets, clock: Clock, workers: int) -> None:
        self._client = client
        self._autoscalers = autoscalers
        self._targets = targets
        self._clock = clock
        self._histories: dict[Key, History] = {}
        self.controller = Controller("sim-autoscaler", self._reconcile, workers=workers, clock=clock)
        autoscalers.add_handler(self._autoscaler_changed)

    def _autoscaler_changed(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old["spec"] != new["spec"]:  # its generation does not change
            meta = (new or old or {})["metadata"]
            self.controller.enqueue(Key(meta["namespace"], meta["name"]))

    async def _reconcile(self, key: Key) -> Result:
        autoscaler = self._autoscalers.get(key.namespace, key.name)
        if autoscaler is None or podsof.is_terminating(autoscaler):
            self._histories.pop(key, None)
            return Result()
        status = dict(autoscaler.get("status") or {})
        await self._sync(key, autoscaler, status)
        await podsof.write_status(self._client, self._autoscalers, HORIZONTAL_POD_AUTOSCALERS, autoscaler, status)
        return Result(requeue_after_s=_SYNC_S)

    async def _sync(self, key: Key, autoscaler: Object, status: Object) -> None:
        """Scale the target and bring `status` up to date, in place."""
        status.setdefault("desiredReplicas", 0)
        found, spec = self._targets.find(autoscaler), autoscaler["spec"]
        if found is None:
            reference = spec["scaleTargetRef"]
            text = f"{reference['kind']} {reference['name']!r} not found"
            message = f"the HPA controller was unable to get the target's current scale: {text}"
            self._set(status, "AbleToScale", "False", "FailedGetScale", message)
            return
        resource, target = found
        current = int(target["spec"].get("replicas", 1))
        message = "the HPA controller was able to get the target's current scale"
        self._set(status, "AbleToScale", "True", "SucceededGetScale", message)
        bounds = Bounds(int(spec.get("minReplicas", 1)), int(spec["maxReplicas"]), spec.get("behavior"))
        history = self._histories.setdefault(key, History([(self._clock.monotonic(), current)]))
        desired = current
        if current == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            self._set(status, "ScalingActive", "False", "ScalingDisabled", message)
        elif not bounds.low <= current <= bounds.high:
            desired = min(max(current, bounds.low), bounds.high)
        else:
            try:
                desired = self._recommend(autoscaler, target, current, bounds, history, status)
            except ConfigurationError as error:
                message = f"the HPA was unable to compute the replica count: {error}"
                self._set(status, "ScalingActive", "False", "FailedGetResourceMetric", message)
                status.update(_counts(current, status["desiredReplicas"]))
                return
        if desired != current:
            await self._scale(resource, target, desired, status)
            history.record_change(desired - current, self._clock.monotonic())
        status.update(_counts(current, desired))

    def _recommend(
        self, autoscaler: Object, target: Object, current: int, bounds: Bounds, history: History, status: Object
    ) -> int:
        """Return the replicas for the load; ConfigurationError when there is none that can be measured."""
        metrics: list[Object] = []
        wanted, name = 0, ""
        pods = self._targets.pods_of(target)
        for metric in autoscaler["spec"].get("metrics") or ():
            if metric["type"] != "Resource":
                raise ConfigurationError(f"simulated members have no metrics of type {metric['type']}; use Resource")
            resource, goal = metric["resource"]["name"], metric["resource"]["target"]
            usage = self._measure(target, pods, resource)
            shown: Object = {"averageValue": _quantity(resource, usage.average)}
            if goal["type"] == "Utilization":
                wanted_milli = usage.request * goal["averageUtilization"] / 100
                shown["averageUtilization"] = usage.utilization
                what = f"{resource} resource utilization (percentage of request)"
            else:
                wanted_milli, what = float(to_milli(str(goal["averageValue"]))), f"{resource} resource"
            proposal = scaling.compute_replicas(current, usage, wanted_milli)
            if not metrics or proposal > wanted:
                wanted, name = proposal, what
            metrics.append({"type": "Resource", "resource": {"name": resource, "current": shown}})
        status["currentMetrics"] = metrics
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        self._set(status, "ScalingActive", "True", "ValidMetricFound", message)
        desired, able, limited = history.limit(current, wanted, bounds, self._clock.monotonic())
        self._set(status, "AbleToScale", *able)
        self._set(status, "ScalingLimited", *limited)
        return desired

    def _measure(self, target: Object, pods: list[Object], resource: str) -> Usage:
        meta = target["metadata"]
        load = (meta.get("annotations") or {}).get(_LOADS.get(resource, ""))
        if load is None:
            raise ConfigurationError(
                f"failed to get {resource} utilization: the target has no annotation {_LOADS.get(resource, resource)}"
            )
        ready = sum(map(podsof.is_ready, pods))
        if not ready:
            raise ConfigurationError(
                f"failed to get {resource} utilization: did not receive metrics for targeted pods"
                " (pods might be unready)"
            )
        request = _request(target["spec"]["template"]["spec"], resource)
        if not request:
            raise ConfigurationError(f"failed to get {resource} utilization: missing request for {resource}")
        elapsed_s = (self._clock.now() - from_rfc3339(meta["creationTimestamp"])).total_seconds()
        return Usage(scaling.load_at(load, elapsed_s), ready, len(pods) - ready, request)

    async def _scale(self, resource: Resource, target: Object, desired: int, status: Object) -> None:
        meta = target["metadata"]
        try:
            await self._client.patch(
                resource,
                meta["name"],
                {"spec": {"replicas": desired}},
                namespace=meta["namespace"],
                subresource="scale",
                field_manager=SCALER_MANAGER,
            )
        except ApiError as error:
            message = f"the HPA controller was unable to update the target scale: {error}"
            self._set(status, "AbleToScale", "False", "FailedUpdateScale", message)
            raise
        message = f"the HPA controller was able to update the target scale to {desired}"
        self._set(status, "AbleToScale", "True", "SucceededRescale", message)
        status["lastScaleTime"] = to_rfc3339(self._clock.now())

    def _set(self, status: Object, type_: str, value: str, reason: str, message: str) -> None:
        status["conditions"] = set_condition(
            status.get("conditions"), type_=type_, status=value, reason=reason, message=message, now=self._clock.now()
        )


def _counts(current: int, desired: int) -> Object:
    return {"currentReplicas": current, "desiredReplicas": desired}


def _request(pod_spec: Mapping[str, Any], resource: str) -> int:
    """Return what the containers of one pod request, in milli-units."""
    requests = [(each.get("resources") or {}).get("requests") or {} for each in pod_spec.get("containers", ())]
    return sum(to_milli(str(each[resource])) for each in requests if resource in each)


def _quantity(resource: str, milli: float) -> str:
    return f"{int(milli)}m" if resource == "cpu" else str(int(milli // 1000))
