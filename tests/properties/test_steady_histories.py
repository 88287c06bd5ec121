"""Random histories of clusters: nothing moves out of a cluster that stayed feasible, and every move has a cause.

Each history is one federation without I/O: taints, labels, joins, deaths, returns, scalings, reports, freezes and a
rule for clusters, at random times.
After each event every object goes through its pipeline, as the controllers and `fedctl plan` run it, and in the end
all of them come to rest.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from msgspec import structs
from tests.support.manifests import a_policy
from tests.support.whatif import DEPLOYMENT, PLUGINS, SPREADS, a_cluster, a_source, run_to_end

from federation.api import names
from federation.api.federatedtype import default_type_configs
from federation.api.resources import FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.annotationrecords import to_time
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import Object
from federation.features.clusterrules.rules.ruleset import compile_rule, plan_cluster
from federation.planning.changehold import Hold
from federation.planning.failover.application import Eviction, record_of, record_text
from federation.planning.federatedobject import builder
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.freezes.changefreeze import (
    Change,
    Freeze,
    compile_freeze,
    find_frozen,
    find_frozen_move,
)
from federation.planning.guard.losses import held_placement, lost_clusters
from federation.planning.overrides.policymatching import idle_controllers
from federation.scheduling.answers import Due
from federation.scheduling.attemptpatches import placement_patch
from federation.scheduling.framework.testing import NOW
from federation.scheduling.relatedworkloads import key_of
from federation.scheduling.whatif.pipelinerun import PipelineRun, run_pipeline
from federation.scheduling.whatif.state import CompiledState, ObjectSet

CLUSTERS = tuple("abcdef")
FOLLOWS = {"policyContentChanged": True, "clusterLabelsChanged": True, "clusterJoined": True}
OF_ONE_AND_TWO = {"key": "of", "operator": "In", "values": ["one", "two"]}
SPECS: Mapping[str, Mapping[str, Any]] = {
    "one": {"maxClusters": 1},
    "two": {"maxClusters": 2, "clusterSelector": {"zone": "1"}},
    "all": {},
    "copies": {"schedulingMode": "Duplicate", "maxClusters": 2},
    "overflow": {"clusterGroups": [{"name": "own", "clusters": ["a", "c"]}, {"name": "rented", "when": "Overflow"}]},
    "fallback": {"clusterGroups": [{"name": "own", "clusters": ["b"]}, {"name": "others"}]},
    "moving": {"maxClusters": 2, "failover": {"application": {"maxMoves": 2}}},
    "beside": {"maxClusters": 1, "workloadAffinity": {"required": [{"labelSelector": {"matchLabels": {"of": "one"}}}]}},
    "pair": {"workloadAffinity": {"required": [{"labelSelector": {"matchLabels": {"of": "pair"}}}]}, "maxClusters": 1},
    "apart": {
        "maxClusters": 1,
        "workloadAntiAffinity": {"required": [{"labelSelector": {"matchExpressions": [OF_ONE_AND_TWO]}}]},
    },
    "several": {"spreadConstraints": [{"minGroups": 2, "maxGroups": 3}]},
    "rather": {"maxClusters": 2, "workloadAntiAffinity": {"preferred": [{"weight": 9, "labelSelector": {}}]}},
}
RULE = compile_rule(
    {
        "metadata": {"name": "sick"},
        "spec": {
            "when": [{"clusterLabels": {"matchLabels": {"sick": "yes"}}}],
            "holdSeconds": 60,
            "clearSeconds": 300,
            "taints": [{"key": "sick", "effect": "NoExecute"}],
        },
    },
    "ClusterTaintPolicy",
)
HELD: tuple[Object, ...] = ({}, {"holds": ["Moves"]}, {"clusterSelector": {"matchLabels": {"zone": "1"}}})
"""Parts of the freezes that begin in a history."""
TOLERATED = timedelta(seconds=300)
"""How long an object tolerates that a cluster does not answer."""


def _count(replicas: int | None) -> int:
    return replicas or 0


def _max_clusters(name: str) -> int:
    return int(SPECS[name].get("maxClusters") or len(CLUSTERS))


def policies() -> list[Object]:
    made = []
    for name, spec in SPECS.items():
        policy = a_policy({}, name=name, reschedulePolicy={"rescheduleWhen": FOLLOWS}, **spec)
        policy["spec"]["placement"] = [{"cluster": "*"}]
        made.append(policy)
    return made


class History:
    """One federation; `step` makes an event happen and reconciles every object."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now: datetime = NOW
        self.clusters = {name: a_cluster(name, zone="1") for name in CLUSTERS[: self.random.randint(2, 4)]}
        kinds = {FEDERATED_TYPE_CONFIGS: default_type_configs(), PROPAGATION_POLICIES: policies()}
        self.state = CompiledState(ObjectSet(kinds), ObjectSet(kinds), PLUGINS, SPREADS, NOW)
        for cluster in self.clusters.values():
            self.state.clusters.update(cluster)
        self.objects = {name: self._made(name) for name in SPECS}
        self.freezes: list[Freeze] = []
        self.moves = 0
        self.frozen = 0
        self.held: set[str] = set()
        """Objects whose last decision a freeze held."""
        self.log: list[str] = []

    def _made(self, policy: str) -> Object:
        source = a_source(f"web-{policy}", self.random.randint(1, 6))
        source["metadata"]["labels"] = {"of": policy}
        made = builder.build(source, DEPLOYMENT, idle=idle_controllers(self.state.bindings, source))
        labels = {**(made["metadata"].get("labels") or {}), names.PROPAGATION_POLICY_LABEL: policy}
        made["metadata"] |= {"resourceVersion": "1", "generation": 1, "uid": policy, "labels": labels}
        return made

    def step(self) -> None:
        self.now += timedelta(seconds=self.random.choice((1, 30, 400)))
        happen: Callable[[], None] = self.random.choice(
            (
                self.taint,
                self.untaint,
                self.label,
                self.join,
                self.die,
                self.come_back,
                self.scale,
                self.report,
                self.ail,
                self.sicken,
                self.freeze,
            )
        )
        happen()
        self.rule()
        self.log.append(happen.__name__)
        for name in self.objects:
            self.reconcile(name)
        apart, others = (
            {cluster for name in named for cluster in current_clusters(self.objects[name], DEPLOYMENT)}
            for named in (("apart",), ("one", "two"))
        )
        assert not apart & others, self.log

    def reconcile(self, name: str) -> None:
        before = current_clusters(self.objects[name], DEPLOYMENT)
        staying = {cluster for cluster in before if self.is_feasible(cluster, name)}
        run: PipelineRun = run_to_end(run_pipeline(self.objects[name], DEPLOYMENT, self.state, now=self.now))
        was_held, held = name in self.held, self.as_frozen(name, run)
        (self.held.discard if held is None else self.held.add)(name)
        self.objects[name] = dict(run.federated) if held is None else held
        self.state.observe(self.objects[name])
        after = current_clusters(self.objects[name], DEPLOYMENT)
        lost = {c for c, count in before.items() if (after.get(c, 0) or 0) < (count or 0) or c not in after}
        if not lost:
            return
        self.moves += 1
        assert isinstance(run.assessment, Due)
        assert run.assessment.comparison.changed, "a move names its cause"
        # A scale-down also counts when no decision was possible at the time.
        placed, wanted = sum(map(_count, before.values())), self.objects[name]["spec"]["template"]["spec"]["replicas"]
        # What its group cannot hold any more goes to another group as a whole: after a loss, or with more replicas.
        is_in_another_group = name == "fallback" and not after.keys() & staying
        has_outgrown = is_in_another_group and (wanted > placed or before.keys() - staying)
        # Replicas that a freeze let go elsewhere have left it in another group, or in more clusters than it may be in.
        has_outgrown = has_outgrown or (was_held and (name == "fallback" or len(before) > _max_clusters(name)))
        assert placed > wanted or has_outgrown or not lost & staying, (name, before, after, self.log)

    def as_frozen(self, name: str, run: PipelineRun) -> Object | None:
        """Return the object as the scheduler writes it if a freeze holds the move of the run, else None."""
        due, decision, attempt = run.assessment, run.decision, run.attempt
        if not (isinstance(due, Due) and attempt is not None and decision is not None and decision.is_success):
            return None
        before, after, wanted = attempt.current(), decision.placements, due.unit.desired_replicas
        evicted = {cluster for cluster in lost_clusters(before, after) if not self.is_feasible(cluster, name)}
        if find_frozen_move(before, after, wanted, self._find_frozen, is_evicting=bool(evicted)) is None:
            return None
        self.frozen += 1
        held = held_placement(before, after, wanted)
        request = due.unit.shape.request
        undone, kept = ({cluster: _count(count) for cluster, count in each.items()} for each in (after, held))
        key = ("default", attempt.federated["metadata"]["name"])
        self.state.assume_cache.assume(key, request, undone, kept, 0.0)
        self.state.workloads.forget(key_of(self.objects[name]))
        patch, _ = placement_patch(attempt, due, held, decision.reason, is_held=True)
        return self.objects[name] if patch is None else apply_merge_patch(self.objects[name], patch)

    def _find_frozen(self, cluster: str, change: Change) -> Hold | None:
        labels = self.clusters[cluster]["metadata"]["labels"] if cluster in self.clusters else {}
        return find_frozen(self.freezes, "default", "web", labels, change, self.now)

    def come_to_rest(self, rounds_max: int = 6) -> None:
        """Let every freeze end and every relation be followed; after some rounds nothing moves any more."""
        self.now += timedelta(days=1)
        self.rule()
        for _ in range(rounds_max):
            before = [current_clusters(each, DEPLOYMENT) for each in self.objects.values()]
            for name in self.objects:
                self.reconcile(name)
            if before == [current_clusters(each, DEPLOYMENT) for each in self.objects.values()]:
                return
        raise AssertionError(f"it does not come to rest: {self.log}")

    def is_feasible(self, cluster: str, policy: str) -> bool:
        """Return whether an object of the policy that runs in the cluster may stay."""
        found = self.clusters.get(cluster)
        if found is None or (policy == "two" and found["metadata"]["labels"].get("zone") != "1"):
            return False
        if policy == "beside" and cluster not in current_clusters(self.objects["one"], DEPLOYMENT):
            return False  # its partner left at a time when it had to wait
        if policy == "moving" and cluster in record_of(self.objects["moving"]).evicted:
            return False
        return all(self._is_tolerated(taint) for taint in found["spec"]["taints"])

    def _is_tolerated(self, taint: Object) -> bool:
        if taint["effect"] != "NoExecute":
            return True
        is_ours = taint["key"] == names.TAINT_UNREACHABLE
        return is_ours and self.now < datetime.fromisoformat(taint["timeAdded"]) + TOLERATED

    # -- events

    def taint(self) -> None:
        effect = self.random.choice(("NoExecute", "NoSchedule", "PreferNoSchedule"))
        self._add_taint(self._any(), {"key": "t", "value": "", "effect": effect})

    def untaint(self) -> None:
        self._remove_taints(self._any(), "t")

    def label(self) -> None:
        key = self.random.choice(("zone", "other"))
        cluster = self._any()
        labels = {**self.clusters[cluster]["metadata"]["labels"], key: self.random.choice("12")}
        self._put(cluster, {"metadata": {**self.clusters[cluster]["metadata"], "labels": labels}})

    def join(self) -> None:
        name = self.random.choice(CLUSTERS)
        if name not in self.clusters:
            self.clusters[name] = a_cluster(name, zone="1")
            self.state.clusters.update(self.clusters[name])

    def die(self) -> None:
        cluster = self._any()
        self._set_ready(cluster, "Unknown")
        added = to_rfc3339(self.now)
        for effect in ("NoSchedule", "NoExecute"):
            self._add_taint(cluster, {"key": names.TAINT_UNREACHABLE, "effect": effect, "timeAdded": added})

    def come_back(self) -> None:
        cluster = self._any()
        self._set_ready(cluster, "True")
        self._remove_taints(cluster, names.TAINT_UNREACHABLE)

    def scale(self) -> None:
        name = self.random.choice(list(SPECS))
        source = self.objects[name]["spec"]["template"]
        template = {**source, "spec": {**source["spec"], "replicas": self.random.randint(1, 9)}}
        self.objects[name] = {**self.objects[name], "spec": {**self.objects[name]["spec"], "template": template}}

    def ail(self) -> None:
        """Let the failover of applications find the workload unhealthy in one of its clusters."""
        obj = self.objects["moving"]
        record, placed = record_of(obj), current_clusters(obj, DEPLOYMENT)
        name = self.random.choice(sorted(placed) or [""])
        if name and name not in record.evicted and len(record.evicted) < 2:
            evicted = {**record.evicted, name: Eviction(to_time(self.now), "unhealthy there", placed[name])}
            text = record_text(structs.replace(record, template="t", was_healthy=True, evicted=evicted))
            annotations = {**obj["metadata"]["annotations"], names.APPLICATION_FAILOVER: text}
            self.objects["moving"] = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}

    def sicken(self) -> None:
        """Let what the rules of clusters look at begin or end."""
        cluster = self._any()
        metadata = self.clusters[cluster]["metadata"]
        labels = {key: value for key, value in metadata["labels"].items() if key != "sick"}
        if "sick" not in metadata["labels"]:
            labels["sick"] = "yes"
        self._put(cluster, {"metadata": {**metadata, "labels": labels}})

    def freeze(self) -> None:
        """Begin a freeze; it ends by itself."""
        end = self.now + timedelta(seconds=self.random.choice((40, 900)))
        window = {"start": to_rfc3339(self.now), "end": to_rfc3339(end)}
        spec = {**self.random.choice(HELD), "reason": "sale", "windows": [window]}
        self.freezes.append(compile_freeze({"metadata": {"name": f"f{len(self.freezes)}"}, "spec": spec}))

    def rule(self) -> None:
        """Apply the ClusterTaintPolicy."""
        for name in sorted(self.clusters):
            others = [each for other, each in self.clusters.items() if other != name]
            plan = plan_cluster(self.clusters[name], [RULE], others, self.now)
            if plan.is_changed:
                metadata = self.clusters[name]["metadata"]
                written = {**(metadata.get("annotations") or {}), **plan.annotations}
                annotations = {key: value for key, value in written.items() if value is not None}
                spec = {**self.clusters[name]["spec"], "taints": plan.taints}
                self._put(name, {"metadata": {**metadata, "annotations": annotations}, "spec": spec})

    def report(self) -> None:
        cluster = self._any()
        status = self.clusters[cluster]["status"]
        free = {"cpu": str(self.random.randint(0, 100)), "memory": f"{self.random.randint(0, 100)}Gi"}
        self._put(cluster, {"status": {**status, "resources": {**status["resources"], "available": free}}})

    def _any(self) -> str:
        return self.random.choice(sorted(self.clusters))

    def _put(self, cluster: str, fields: Object) -> None:
        self.clusters[cluster] = {**self.clusters[cluster], **fields}
        self.state.clusters.update(self.clusters[cluster])

    def _add_taint(self, cluster: str, taint: Object) -> None:
        spec = self.clusters[cluster]["spec"]
        kept = [t for t in spec["taints"] if (t["key"], t["effect"]) != (taint["key"], taint["effect"])]
        self._put(cluster, {"spec": {**spec, "taints": [*kept, taint]}})

    def _remove_taints(self, cluster: str, key: str) -> None:
        spec = self.clusters[cluster]["spec"]
        self._put(cluster, {"spec": {**spec, "taints": [t for t in spec["taints"] if t["key"] != key]}})

    def _set_ready(self, cluster: str, ready: str) -> None:
        status = self.clusters[cluster]["status"]
        conditions = [
            {**each, "status": ready} if each["type"] == names.CLUSTER_READY else each for each in status["conditions"]
        ]
        self._put(cluster, {"status": {**status, "conditions": conditions}})


def play(seed: int, steps: int = 12) -> tuple[int, int]:
    """Play one history; return how many objects moved, and how many moves a freeze held."""
    history = History(seed)
    for name in history.objects:
        history.reconcile(name)
    for _ in range(steps):
        history.step()
    history.come_to_rest()
    return history.moves, history.frozen


def test_no_object_leaves_a_cluster_that_stayed_feasible() -> None:
    moves, frozen = map(sum, zip(*map(play, range(30)), strict=True))
    assert moves > 20, "many have a cause to move"
    assert frozen > 5, "some of them wait for the end of a freeze"


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_no_object_leaves_a_cluster_that_stayed_feasible_in_ten_thousand_histories(part: int) -> None:
    moves, frozen = map(sum, zip(*map(play, range(part * 1000, part * 1000 + 1000)), strict=True))
    assert moves > 500
    assert frozen > 100
