"""The simulated disruption controller: the status of PodDisruptionBudgets, which evictions obey.

The expected pods are those that the selected pods' controllers want, or the pods themselves when `minAvailable` is a
number. Read `apiserver/verbs/subresources.py` for the eviction that consumes `disruptionsAllowed`.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.conditions import set_condition
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import POD_DISRUPTION_BUDGETS, PODS, Object
from federation.apimachinery.selectors import compile_label_selector
from federation.runtime.controller import Controller, Key, Result, key_of
from federation.runtime.informer import Informer
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.rollout import resolve_percentage
from federation.simulator.controllers.selections import Selections

_DONE = Result()
_DISRUPTION_S = 120.0
"""An evicted pod counts as disrupted for this long, unless its deletion is seen before."""


class DisruptionBudgetController:
    """Reconciles the PodDisruptionBudgets of one member. `scalable` are informers of owners by group and kind."""

    def __init__(self, member: Member, scalable: Mapping[tuple[str, str], Informer]) -> None:
        self._client = member.client
        self._budgets = budgets = member.cache(POD_DISRUPTION_BUDGETS)
        self._scalable = scalable
        self._clock = member.clock
        pods = member.cache(PODS)
        self._selections = Selections(
            budgets, pods, _required_labels, lambda budget: compile_label_selector(budget["spec"].get("selector"))
        )
        self.controller = Controller("sim-disruption", self._reconcile, workers=2, clock=member.clock)
        budgets.add_handler(self._budget_changed)
        pods.add_handler(self._pod_changed)
        for informer in scalable.values():
            informer.add_handler(self._scale_changed)

    def _budget_changed(self, old: Object | None, new: Object | None) -> None:
        disrupted = [((each or {}).get("status") or {}).get("disruptedPods") for each in (old, new)]
        if podsof.is_spec_change(old, new) or disrupted[0] != disrupted[1]:
            self.controller.enqueue(key_of(new or old or {}))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old and new and _health_facts(old) == _health_facts(new):
            return
        for pod in (old, new):
            for budget in self._selections.selecting(pod) if pod is not None else ():
                self.controller.enqueue(key_of(budget))

    def _scale_changed(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or old["spec"].get("replicas") == new["spec"].get("replicas"):
            return
        template = {"metadata": {**new["spec"]["template"]["metadata"], "namespace": new["metadata"]["namespace"]}}
        for budget in self._selections.selecting(template):
            self.controller.enqueue(key_of(budget))

    async def _reconcile(self, key: Key) -> Result:
        budget = self._budgets.get(key.namespace, key.name)
        if budget is None or podsof.is_terminating(budget):
            return _DONE
        now = self._clock.now()
        pods = [pod for pod in self._selections.pods_of(budget) if not podsof.is_finished(pod)]
        expected, desired = compute_expectation(budget["spec"], len(pods), self._wanted_by_controllers(pods))
        disrupted = {
            name: since
            for name, since in ((budget.get("status") or {}).get("disruptedPods") or {}).items()
            if from_rfc3339(since) + timedelta(seconds=_DISRUPTION_S) > now
            and any(pod["metadata"]["name"] == name and not podsof.is_terminating(pod) for pod in pods)
        }
        healthy = sum(
            podsof.is_ready(pod) and not podsof.is_terminating(pod) and pod["metadata"]["name"] not in disrupted
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = budget["metadata"].get("generation", 1)
        conditions = set_condition(
            (budget.get("status") or {}).get("conditions"),
            type_="DisruptionAllowed",
            status="True" if allowed else "False",
            reason="SufficientPods" if allowed else "InsufficientPods",
            now=now,
        )
        status: Object = {
            "observedGeneration": generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            # metav1.Condition has a message, even an empty one.
            "conditions": [{"message": "", **each, "observedGeneration": generation} for each in conditions],
            **({"disruptedPods": disrupted} if disrupted else {}),
        }
        await podsof.write_status(self._client, self._budgets, POD_DISRUPTION_BUDGETS, budget, status)
        return Result(requeue_after_s=_DISRUPTION_S) if disrupted else _DONE

    def _wanted_by_controllers(self, pods: Sequence[Object]) -> int:
        """Return the replicas of all controllers of the pods; a pod without a scalable one does not count."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = self._find_controller(pod)
            above = self._find_controller(owner) if owner is not None else None
            top = above or owner
            if top is not None:
                wanted[top["metadata"]["uid"]] = int(top["spec"].get("replicas", 1))
        return sum(wanted.values())

    def _find_controller(self, obj: Object) -> Object | None:
        reference = controller_of(obj)
        if reference is None:
            return None
        informer = self._scalable.get((reference["apiVersion"].rpartition("/")[0], reference["kind"]))
        return None if informer is None else informer.get(obj["metadata"]["namespace"], reference["name"])


def compute_expectation(spec: Mapping[str, Any], pods: int, wanted: int) -> tuple[int, int]:
    """Return the expected pods and how many of them have to be healthy."""
    if (unavailable := spec.get("maxUnavailable")) is not None:
        return wanted, max(0, wanted - resolve_percentage(unavailable, wanted, round_up=True))
    available = spec.get("minAvailable")
    if isinstance(available, str):
        return wanted, resolve_percentage(available, wanted, round_up=True)
    return pods, int(available or 0)


def _required_labels(budget: Object) -> Mapping[str, str] | None:
    selector: Mapping[str, Any] | None = budget["spec"].get("selector")
    return None if selector is None else selector.get("matchLabels") or {}


def _health_facts(pod: Object) -> tuple[Any, ...]:
    return pod["metadata"].get("labels"), podsof.is_terminating(pod), podsof.is_finished(pod), podsof.is_ready(pod)
