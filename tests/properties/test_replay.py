"""Properties of records and replays: a replay without a change repeats every decision, however the records were cut."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.features.catalogue import decision_chain
from federation.planning.federatedobject import pendingcontrollers
from federation.scheduling.answers import Due
from federation.scheduling.assessment import assess
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.attempt import assume, start_attempt
from federation.scheduling.attemptpatches import placement_patch
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.occasions import Occasion
from federation.scheduling.replay.logentries import Chunk, Header, read
from federation.scheduling.replay.recorder import InputRecorder, RecorderOptions
from federation.scheduling.replay.redecide import Verdict, redecide
from federation.scheduling.replay.world import ReplayWorld

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLUGINS = load_plugins()
CONFIG = next(each for each in default_type_configs() if each["metadata"]["name"] == "deployments.apps")
TYPE: FederatedType = from_config(CONFIG)
PENDING = {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(pendingcontrollers.normalise(TYPE.controllers))}
CLUSTERS = ("east", "north", "west")
steps = st.one_of(
    st.tuples(st.just("report"), st.sampled_from(CLUSTERS), st.integers(0, 9_000)),
    st.tuples(st.just("taint"), st.sampled_from(CLUSTERS), st.sampled_from(("NoSchedule", "NoExecute", ""))),
    st.tuples(st.just("leave"), st.sampled_from(CLUSTERS), st.just(0)),
    st.tuples(st.just("weigh"), st.sampled_from(CLUSTERS), st.integers(0, 3)),
    st.tuples(st.just("scale"), st.sampled_from(("blog", "web")), st.integers(0, 40)),
    st.tuples(st.just("scale"), st.sampled_from(("blog", "web")), st.integers(0, 40)),
    st.tuples(st.just("take"), st.just(""), st.just(0)),
)


def a_cluster(name: str, millicores: int, effect: str = "") -> dict[str, Any]:
    amounts = {"cpu": f"{millicores}m", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": {"zone": name}, "resourceVersion": str(millicores)},
        "spec": {"taints": [{"key": "maintenance", "effect": effect}] if effect else []},
        "status": {
            "conditions": [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True"}],
            "apiResourceTypes": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
            "resources": {"allocatable": {**amounts, "cpu": "9"}, "available": amounts},
        },
    }


def a_policy(weights: dict[str, int]) -> dict[str, Any]:
    placement = [{"cluster": name, "preferences": {"weight": weight}} for name, weight in weights.items()]
    return {
        "metadata": {"namespace": "default", "name": "divide"},
        "spec": {
            "schedulingMode": "Divide",
            "placement": placement,
            "reschedulePolicy": {"rescheduleWhen": {"policyContentChanged": True}},
        },
    }


class History:
    """A little federation: decisions as the controller makes them, and their records."""

    def __init__(self, options: RecorderOptions) -> None:
        self.recorder = InputRecorder(options)
        self.chunks: list[Chunk] = []
        self.world = ReplayWorld(Header("test"), PLUGINS, decision_chain())
        self.assume_cache = AssumeCache()
        self.objects: dict[str, dict[str, Any]] = {}
        self.weights = dict.fromkeys(CLUSTERS, 1)
        self.decided = 0
        self.recorder.begin(Header("test"))
        self._put(FEDERATED_TYPE_CONFIGS, CONFIG)
        for name in CLUSTERS:
            self._put(FEDERATED_CLUSTERS, a_cluster(name, 8_000))
        self._put(PROPAGATION_POLICIES, a_policy(self.weights))

    def _put(self, resource: Any, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        self.world.put((resource, metadata.get("namespace", ""), metadata["name"]), obj)
        self.recorder.observe(resource, None, obj)

    def do(self, step: tuple[str, str, Any]) -> None:
        verb, name, value = step
        if verb == "report":
            self._put(FEDERATED_CLUSTERS, a_cluster(name, value))
        elif verb == "taint":
            self._put(FEDERATED_CLUSTERS, a_cluster(name, 8_000, value))
        elif verb == "leave":
            self.world.put((FEDERATED_CLUSTERS, "", name), None)
            self.recorder.observe(FEDERATED_CLUSTERS, a_cluster(name, 0), None)
        elif verb == "weigh":
            self.weights = {**self.weights, name: value}
            self._put(PROPAGATION_POLICIES, a_policy(self.weights))
        elif verb == "scale":
            self.scale(name, value)
        elif (chunk := self.recorder.take()) is not None:
            self.chunks.append(chunk)

    def scale(self, name: str, replicas: int, *, is_plugin_back: bool = False) -> None:
        held = self.objects.get(name, {"metadata": {"annotations": {}}, "spec": {}})
        template = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "main"}]}}},
        }
        metadata = {
            "namespace": "default",
            "name": f"{name}-deployments.apps",
            "resourceVersion": "1",
            "labels": {names.PROPAGATION_POLICY_LABEL: "divide"},
            "annotations": {**held["metadata"]["annotations"], **PENDING},
        }
        federated = {"metadata": metadata, "spec": {**held["spec"], "template": template}}
        at = NOW + timedelta(seconds=self.decided)
        attempt = start_attempt(federated, TYPE, self.world.policies)
        assert attempt is not None
        snapshot, now_s = self.world.clusters.snapshot(), float(self.decided)
        due = assess(
            attempt,
            self.world,
            self.world.chain,
            snapshot,
            Occasion(
                at,
                is_unschedulable=not is_plugin_back,
                is_plugin_back=is_plugin_back,
                assumed=self.assume_cache.snapshot(now_s),
            ),
        )
        assert isinstance(due, Due)
        decision = self.world.engine.decide(due.unit, snapshot, due.profile, now=at)
        self.recorder.decided(attempt, due, decision)
        self.decided += 1
        if decision.is_success:
            assume(self.assume_cache, name, decision, now_s)
            patch, _ = placement_patch(attempt, due, decision.placements, decision.reason)
            federated = apply_merge_patch(federated, patch or {})
        self.objects[name] = federated

    def replay(self) -> Verdict:
        self.do(("take", "", 0))
        verdict = Verdict()
        for again in redecide(read(self.chunks), PLUGINS, decision_chain(), 0, 2**62):
            verdict.add(again)
        return verdict


@given(
    history=st.lists(steps, max_size=40),
    segment=st.sampled_from((0, 500, 4 << 20)),
    known=st.sampled_from((1, 99)),
    waiting=st.sampled_from((0, 1, 512)),
)
def test_a_replay_without_a_change_repeats_every_decision(
    history: list[tuple[str, str, Any]], segment: int, known: int, waiting: int
) -> None:
    """Segments of one chunk and of many; objects as differences and as a whole; text made at once and later."""
    past = History(RecorderOptions(segment_bytes_max=segment, objects_max=known, waiting_max=waiting))
    for step in history:
        past.do(step)
    verdict = past.replay()
    assert verdict.different == []
    assert verdict.equal == verdict.decisions
    assert verdict.decisions <= past.decided


def test_a_decision_that_came_out_otherwise_is_named() -> None:
    past = History(RecorderOptions())
    past.do(("scale", "web", 9))
    past.do(("weigh", "east", 3))
    past.recorder.observe(PROPAGATION_POLICIES, None, a_policy({"north": 1}))  # which no decision saw
    past.do(("scale", "web", 12))
    verdict = past.replay()
    (other,) = verdict.different
    assert (verdict.equal, other.entry.key) == (1, ("default", "web-deployments.apps"))
    assert other.entry.result.placements.keys() == set(CLUSTERS)
    assert other.again is not None
    assert other.again.placements.keys() == {"north"}


def test_a_full_buffer_drops_decisions_and_no_change_of_the_world() -> None:
    past = History(RecorderOptions(pending_max=6))
    for replicas in range(1, 21):
        past.do(("report", "east", replicas * 100))
        past.do(("scale", "web", replicas))
    verdict = past.replay()
    assert past.recorder.dropped > 0
    assert verdict.decisions == 20 - past.recorder.dropped
    assert verdict.equal == verdict.decisions
