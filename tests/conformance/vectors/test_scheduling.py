"""Scheduling unit, algorithm, triggers, profiles and helpers against the reference's own answers."""

import json
from typing import Any

import pytest
from tests.support.vectors import each_case, facts, filled, load

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition
from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.dotpaths import split
from federation.apimachinery.errors import PluginError
from federation.apimachinery.resources import DEPLOYMENTS, STATEFUL_SETS
from federation.scheduling.clustertriggers import cluster_trigger_changed
from federation.scheduling.engine import Engine
from federation.scheduling.framework.profile import Profile, apply_profile, refs
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.testing import NOW, a_cluster, a_unit
from federation.scheduling.framework.types import SUCCESS, Division, SchedulingMode, SchedulingUnit, error
from federation.scheduling.policymatching import labelled_policy
from federation.scheduling.policyspec import compile_policy, to_tolerations
from federation.scheduling.snapshot import ClusterCache, Snapshot
from federation.scheduling.triggers import ObjectTriggers, Triggers, TriggerSource, compare_triggers
from federation.scheduling.unit import build_unit
from federation.scheduling.usermigration import MigrationError, applied_annotation, applied_form

EMPTY = Snapshot(0, ())


def unit_of(
    policy: dict[str, Any], annotations: dict[str, str] | None, replicas_path: str = "spec.replicas"
) -> SchedulingUnit:
    federated = {
        "metadata": {"name": "web-deployments", "namespace": "default", "annotations": annotations},
        "spec": {"template": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}},
    }
    kind = FederatedType("deployments", DEPLOYMENTS, (), PathDefinition(replicas_spec=split(replicas_path)))
    return build_unit(federated, kind, compile_policy(policy), EMPTY)


def as_wire(unit: SchedulingUnit) -> dict[str, Any]:
    fields = {
        "schedulingMode": unit.mode,
        "replicasStrategy": unit.strategy,
        "stickyCluster": unit.sticky,
        "clusterSelector": dict(unit.affinity.cluster_selector),
        "clusterNames": {name: {} for name in unit.preferences.cluster_names},
        "affinity": unit.affinity.required,
        "preferred": [entry.weight for entry in unit.affinity.preferred],
        "tolerations": unit.tolerations,
        "maxClusters": unit.max_clusters,
        "minReplicas": dict(unit.preferences.min_replicas),
        "maxReplicas": dict(unit.preferences.max_replicas),
        "weights": dict(unit.preferences.weights),
        "priorities": dict(unit.preferences.priorities or {}),
    }
    return {key: value for key, value in fields.items() if value or key == "stickyCluster"}


def expected_wire(expected: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"stickyCluster": False} | expected
    result["tolerations"] = to_tolerations(result.get("tolerations") or ())
    minimums = result.get("minReplicas") or {}
    result["minReplicas"] = {name: least for name, least in minimums.items() if least}
    affinity = ((result.pop("affinity", None) or {}).get("clusterAffinity")) or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    result["affinity"] = None if required is None else compile_cluster_terms(required.get("clusterSelectorTerms"))
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    result["preferred"] = [entry["weight"] for entry in preferred if entry.get("weight")]
    return {key: value for key, value in result.items() if value or key == "stickyCluster"}


@each_case(load("scheduling_unit"))
def test_scheduling_unit(case: dict[str, Any]) -> None:
    given = filled(case["input"], policy={"spec": {}}, annotations={}, replicasSpecPath="")
    expected = filled(case["expected"], schedulingUnit={}, priorities={}, found=False)
    match given["op"]:
        case "scheduling_unit_from_policy_and_annotations":
            unit = unit_of(given["policy"], given["annotations"])
            assert as_wire(unit) == expected_wire(expected["schedulingUnit"])
        case "scheduling_mode":
            assert given.get("kind") in (None, "Deployment", "StatefulSet")  # only the path decides
            unit = unit_of(given["policy"], {}, given["replicasSpecPath"])
            assert unit.mode == (expected.get("schedulingMode") or "Duplicate")
        case "replicas_strategy_from_policy":
            assert unit_of(given["policy"], {}).strategy == (expected.get("replicasStrategy") or "Spread")
        case _:
            priorities = unit_of({"spec": {}}, given["annotations"]).preferences.priorities
            assert (dict(priorities), bool(priorities)) == (expected["priorities"], expected["found"])


ONE_EACH: dict[str, Any] = {"filter": [], "score": [], "select": []}
"""The plugins of all cases; that of replicas is described in words."""


class OneEach:
    def replicas(self, unit: SchedulingUnit, clusters: Any, state: Any) -> Division:
        return Division({cluster.name: 1 for cluster in clusters})


class Answering:
    def __init__(self, is_success: bool) -> None:
        self._status = SUCCESS if is_success else error("no")

    def filter(self, unit: Any, cluster: Any, state: Any) -> Any:
        return self._status


def fake_plugin(points: list[str]) -> Any:
    return type("Fake", (), {point: lambda self: None for point in points})()


@each_case(load("scheduler_core"))
def test_scheduler_core(case: dict[str, Any]) -> None:
    given = filled(case["input"], registry={}, enabled={}, pluginResults=[], clusters=[], su={}, plugins={})
    expected = filled(case["expected"], error=False, suggestedClusters={})
    if given["op"] == "newFramework":
        registry = PluginRegistry(
            {name: lambda _, p=points or []: fake_plugin(p) for name, points in given["registry"].items()}
        )
        profile = Profile(**{point: refs(*(enabled or ())) for point, enabled in given["enabled"].items()})
        if expected["error"]:
            with pytest.raises(PluginError):
                Framework(profile, registry)
        else:
            Framework(profile, registry)
    elif given["op"] == "runFilters":
        results = {f"plugin{index}": ok for index, ok in enumerate(given["pluginResults"])}
        registry = PluginRegistry({name: lambda _, ok=ok: Answering(ok) for name, ok in results.items()})
        snapshot = Snapshot(1, (a_cluster().built(),))
        decision = Engine(registry).decide(a_unit(), snapshot, Profile(filter=refs(*results)), now=NOW)
        assert decision.is_success == (expected["code"] == "Success")
        first = next((name for name, ok in results.items() if not ok), None)
        assert (first is None) == (expected.get("failedPlugin") is None)
        assert (decision.failure.plugin if decision.failure else None) == first
    else:
        plugins = facts(given["plugins"], filter=[], score=[], select=[], replicas="")
        assert plugins == {**ONE_EACH, "replicas": plugins["replicas"]}
        su = facts(
            given["su"], schedulingMode="Duplicate", desiredReplicas=None, stickyCluster=False, currentClusters={}
        )
        unit = a_unit(
            mode=SchedulingMode(su["schedulingMode"]),
            desired_replicas=su["desiredReplicas"],
            sticky=su["stickyCluster"],
            current=su["currentClusters"],
        )
        registry = PluginRegistry({"one": lambda _: OneEach()})
        snapshot = Snapshot(1, tuple(a_cluster(name).built() for name in given["clusters"]))
        decision = Engine(registry).decide(unit, snapshot, Profile(replicas=refs("one")), now=NOW)
        assert dict(decision.placements) == expected["suggestedClusters"]


def triggers_of(given: dict[str, Any], replicas: int | None) -> tuple[Triggers, Any]:
    of_clusters = {"clusterNames": [], "clusterLabels": [], "clusterTaints": [], "clusterAPIResources": []}
    status = facts(given, policyName="", reschedulePolicy=None, **of_clusters)
    cache = ClusterCache()
    for index, name in enumerate(status.get("clusterNames") or ()):
        at = {
            key: (status.get(key) or [])[index : index + 1]
            for key in ("clusterLabels", "clusterTaints", "clusterAPIResources")
        }
        cache.update(
            {
                "metadata": {"name": name, "labels": (at["clusterLabels"] or [{}])[0] or {}},
                "spec": {"taints": (at["clusterTaints"] or [[]])[0] or []},
                "status": {
                    "conditions": [{"type": "Joined", "status": "True"}],
                    "apiResourceTypes": (at["clusterAPIResources"] or [[]])[0] or [],
                },
            }
        )
    spec = {"reschedulePolicy": status["reschedulePolicy"]} if status.get("reschedulePolicy") is not None else {}
    metadata = {"name": status.get("policyName") or "", "namespace": "default"}
    policy = compile_policy({"metadata": metadata, "spec": spec})
    triggers = TriggerSource(as_kubeadmiral=True).triggers(ObjectTriggers({}, replicas, {}, policy), cache.snapshot())
    return triggers, policy


@each_case(load("scheduling_triggers"))
def test_scheduling_triggers(case: dict[str, Any]) -> None:
    given = filled(case["input"], new={}, old={}, withReplicas=False, withOldTrigger=False, oldStatus={}, newStatus={})
    expected = filled(case["expected"], changed=False, triggersChanged=False, deferredReasons="", error=False)
    if given["op"] == "cluster_trigger_changed":
        assert cluster_trigger_changed(given["new"], given["old"]) == expected["changed"]
        return
    replicas = 2 if given["withReplicas"] else None
    before = triggers_of(given["oldStatus"], replicas)[0]
    old = before if given["withOldTrigger"] else None
    assert not expected["error"]
    new, policy = triggers_of(given["newStatus"], replicas)
    verdict = compare_triggers(None if old is None else old.text, new, policy)
    assert (verdict.is_due, verdict.deferred_reasons) == (expected["triggersChanged"], expected["deferredReasons"])
    assert json.loads(new.text)
    assert list(json.loads(new.text)) == sorted(json.loads(new.text))


@each_case(load("scheduling_profile"))
def test_scheduling_profile(case: dict[str, Any]) -> None:
    points = ("filter", "score", "select", "replicas")
    given = filled(case["input"], base={}, profile={})
    base = Profile(**{point: refs(*(given["base"].get(f"{point}Plugins") or ())) for point in points})
    profile = apply_profile(base, given["profile"])
    found = {f"{point}Plugins": [ref.name for ref in getattr(profile, point)] for point in points}
    assert found == {key: case["expected"].get(key) or [] for key in found}


@each_case(load("scheduler_util"))
def test_scheduler_util(case: dict[str, Any]) -> None:
    given = filled(case["input"], namespace="", replicasSpecPath="", sourceObject={}, migrationConfig={})
    expected = filled(case["expected"], found=False, namespace="", name="", info={}, infoJSON="")
    match given["op"]:
        case "matched_policy":
            labels = {
                names.PROPAGATION_POLICY_LABEL: given.get("propagationPolicyLabel"),
                names.CLUSTER_PROPAGATION_POLICY_LABEL: given.get("clusterPropagationPolicyLabel"),
            }
            ref = labelled_policy(given["namespace"], labels)
            found = {
                "found": ref is not None,
                "namespace": ref.namespace if ref else "",
                "name": ref.name if ref else "",
            }
            assert found == {key: expected[key] for key in found}
        case "validate_migration_config":
            paths = PathDefinition(replicas_spec=split(given["replicasSpecPath"]))
            source = FederatedType("deployments", DEPLOYMENTS, (), paths).replicas(given["sourceObject"])
            has_replicas = source is not None
            message = None
            try:
                applied_form(given["migrationConfig"], has_replicas=has_replicas)
            except MigrationError as problem:
                message = str(problem)
            assert message == (expected.get("error") or None)
        case "convert_migration_config":
            assert applied_form(given["migrationConfig"], has_replicas=True) == expected["info"]
        case _:
            paths = PathDefinition(replicas_spec=split(given["replicasSpecPath"]))
            source = FederatedType("deployments", DEPLOYMENTS, (), paths).replicas(given["sourceObject"])
            text = applied_annotation(given.get("migrationConfigJSON") or "{}", has_replicas=source is not None)
            assert text == expected["infoJSON"]


def test_types_without_a_replicas_field_are_duplicated() -> None:
    assert STATEFUL_SETS.kind == "StatefulSet"
    assert unit_of({"spec": {"schedulingMode": "Divide"}}, {}, "").mode is SchedulingMode.DUPLICATE
