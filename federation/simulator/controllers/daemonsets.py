"""The simulated DaemonSet controller: one pod per matching node, rolling updates, revisions and the status.

`daemons` decides. Pods are bound to their node by node affinity, and the pod scheduler binds them, as in Kubernetes.
"""

from federation.apimachinery.resources import DAEMON_SETS, NODES, PODS, Object
from federation.runtime.controller import Key, Result
from federation.simulator.controllers import daemons
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.claiming import on_dependent_change
from federation.simulator.controllers.daemons import DaemonPlan, Placement, UpdateLimits
from federation.simulator.controllers.memberparts import Member
from federation.simulator.controllers.revisions import REVISION_LABEL, Revisions

_DONE = Result()
_GENERATION_LABEL = "pod-template-generation"
_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"


class DaemonSetController:
    """Reconciles the DaemonSets of one member."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._daemon_sets = daemon_sets = member.cache(DAEMON_SETS)
        self._nodes = member.cache(NODES)
        self._control = member.pods
        self._revisions = Revisions(member, DAEMON_SETS, REVISION_LABEL)
        self._clock = member.clock
        self._suffixes = member.suffixes
        self.controller = member.controller("sim-daemonset", self._reconcile)
        daemon_sets.add_handler(podsof.on_spec_change(self.controller))
        member.cache(PODS).add_handler(on_dependent_change(self.controller, "DaemonSet", daemon_sets))
        self._nodes.add_handler(self._node_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if old and new and _placement_facts(old) == _placement_facts(new):
            return  # a heartbeat
        for daemon_set in self._daemon_sets.list():
            self.controller.enqueue(Key(daemon_set["metadata"]["namespace"], daemon_set["metadata"]["name"]))

    async def _reconcile(self, key: Key) -> Result:
        daemon_set = self._daemon_sets.get(key.namespace, key.name)
        if daemon_set is None or podsof.is_terminating(daemon_set) or not self._nodes.has_synced:
            return _DONE
        await self._control.claim(daemon_set, DAEMON_SETS)
        revisions = await self._revisions.ensure_newest(daemon_set)
        revision_hash = self._revisions.hash_of(revisions[-1])
        placement = Placement(daemon_set["spec"]["template"]["spec"])
        nodes = sorted(self._nodes.list(), key=lambda node: str(node["metadata"]["name"]))
        plan = self._plan(daemon_set, nodes, placement, revision_hash)
        owned = {pod["metadata"]["name"]: pod for pod in self._control.owned(daemon_set)}
        new_pods = [self._to_pod(daemon_set, node, revision_hash) for node in plan.create[: podsof.BURST_MAX]]
        is_complete = await self._control.create(daemon_set, new_pods)
        await self._control.delete([owned[name] for name in plan.delete[: podsof.BURST_MAX] if name in owned])
        if not is_complete or max(len(plan.create), len(plan.delete)) > podsof.BURST_MAX:
            self.controller.enqueue(key)
        pods, now = self._control.owned(daemon_set), self._clock.now()
        by_node = daemons.group_by_node(pods)
        status = daemons.compute_status(daemon_set, nodes, by_node, placement, revision_hash, now)
        await podsof.write_status(self._client, self._daemon_sets, DAEMON_SETS, daemon_set, status)
        live = {revision_hash, *(str(pod["metadata"].get("labels", {}).get(REVISION_LABEL)) for pod in pods)}
        await self._revisions.truncate(revisions, live, int(daemon_set["spec"].get("revisionHistoryLimit", 10)))
        min_ready_s = int(daemon_set["spec"].get("minReadySeconds", 0))
        return Result(requeue_after_s=podsof.next_available_s(pods, min_ready_s, now))

    def _plan(self, daemon_set: Object, nodes: list[Object], placement: Placement, revision_hash: str) -> DaemonPlan:
        """Return what nodes miss or have too much; when there is nothing, the next step of the rolling update."""
        by_node = daemons.group_by_node(self._control.owned(daemon_set))
        limits = UpdateLimits.of(daemon_set, sum(map(placement.should_run, nodes)))
        plan = daemons.plan_nodes(nodes, by_node, placement, allows_surge=limits.surge > 0)
        is_rolling = (daemon_set["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
        if plan.create or plan.delete or not is_rolling:
            return plan
        min_ready_s = int(daemon_set["spec"].get("minReadySeconds", 0))
        return daemons.plan_update(nodes, by_node, placement, limits, revision_hash, min_ready_s, self._clock.now())

    def _to_pod(self, daemon_set: Object, node: str, revision_hash: str) -> Object:
        meta, template = daemon_set["metadata"], daemon_set["spec"]["template"]
        pod = podsof.to_pod(daemon_set, DAEMON_SETS, template, f"{meta['name']}-{self._suffixes.new()}")
        pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), REVISION_LABEL: revision_hash}
        if generation := (meta.get("annotations") or {}).get(_GENERATION_ANNOTATION):
            pod["metadata"]["labels"][_GENERATION_LABEL] = generation
        spec = daemons.to_daemon_spec(template["spec"])
        pod["spec"] = {**spec, "affinity": daemons.to_node_affinity(spec.get("affinity"), node)}
        return pod


def _placement_facts(node: Object) -> tuple[object, ...]:
    spec = node.get("spec") or {}
    return node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable")
