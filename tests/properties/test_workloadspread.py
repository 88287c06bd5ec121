"""Invariants of WorkloadSpreads: limits, the order of scale-in, and the arithmetic of the status."""

import copy
from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.spreads import NOW, SpreadWorkload, a_pod, a_spread, counted_status, seconds_ago, subset_of

from federation.features.workloadspread.rules.deletioncosts import changed_costs
from federation.features.workloadspread.rules.hub import to_hub
from federation.features.workloadspread.rules.ledger import free_replicas
from federation.features.workloadspread.rules.subsets import resolve_limit

NAMES = ("a", "b", "c")
LIMITS = st.none() | st.integers(0, 5) | st.integers(0, 100).map("{}%".format)


@st.composite
def subsets(draw: st.DrawFn) -> list[dict[str, Any]]:
    chosen = draw(st.lists(LIMITS, min_size=1, max_size=3))
    return [{"name": name, "maxReplicas": limit} for name, limit in zip(NAMES, chosen, strict=False)]


class LaggingWorkload(SpreadWorkload):
    """A workload whose controller reconciles with pods that it saw some time ago."""

    seen: dict[str, Any]

    def observe(self) -> None:
        self.seen = dict(self.pods)

    def reconcile_late(self) -> None:
        current, self.pods = self.pods, {name: copy.deepcopy(pod) for name, pod in self.seen.items()}
        self.reconcile()
        self.pods = current


@given(
    subsets(),
    st.lists(
        st.sampled_from(("create", "create", "delete", "observe", "reconcile", "grow", "shrink", "retry", "respec"))
        | st.tuples(st.just("delete"), st.integers(0, 9)),
        max_size=40,
    ),
    st.integers(0, 10),
    LIMITS,
)
def test_no_pod_enters_a_full_subset_in_any_interleaving(
    spec: list[dict[str, Any]], steps: list[Any], total: int, other_limit: Any
) -> None:
    workload = LaggingWorkload(a_spread(spec))
    workload.total = total
    workload.observe()
    for step in steps:
        name, position = step if isinstance(step, tuple) else (step, 0)
        match name:
            case "create":
                before = workload.counts()
                _check_choice(workload, before, workload.create())
            case "retry" if workload.pods:
                _retry_last(workload)
            case "delete" if workload.pods:
                workload.delete(list(workload.pods)[position % len(workload.pods)])
            case "observe":
                workload.observe()
            case "reconcile":
                workload.reconcile_late()
            case "grow" | "shrink":
                workload.total = max(0, workload.total + (1 if name == "grow" else -1))
            case "respec" if other_limit is not None and spec[0]["maxReplicas"] is not None:
                changed = [{**spec[0], "maxReplicas": other_limit}, *spec[1:]]
                workload.spread = {**workload.spread, "spec": a_spread(changed)["spec"]}


def _check_choice(workload: SpreadWorkload, before: dict[str | None, int], chosen: str | None) -> None:
    for subset in workload.spread["spec"]["subsets"]:
        limit = resolve_limit(subset["maxReplicas"], workload.total)
        if chosen == subset["name"]:
            assert limit is None or before.get(chosen, 0) < limit
            return
        # Records may outlive their pods for a moment, so a subset before the chosen one need not be full.
        assert limit is not None, "an unlimited subset takes every pod that reaches it"
    assert chosen is None


def _retry_last(workload: SpreadWorkload) -> None:
    """Admit the newest pod again, as if its first response was lost; it must not count twice while it is recorded."""
    name = list(workload.pods)[-1]
    entry = ((workload.spread.get("status") or {}).get("versionedSubsetStatuses") or {}).get("versionIgnored") or ()
    recorded = {subset["name"] for subset in entry if name in (subset.get("creatingPods") or ())}
    if recorded & {subset["name"] for subset in workload.spread["spec"]["subsets"]}:
        before = workload.spread
        assert {workload.create(name)} == recorded
        assert workload.spread is before


@given(subsets(), st.lists(st.sampled_from((*NAMES, "gone")), max_size=20), st.integers(0, 20))
def test_costs_are_in_the_reverse_order_of_the_subsets(spec: list[dict[str, Any]], pods: list[str], total: int) -> None:
    groups: dict[str, list[Any]] = {}
    known = [subset["name"] for subset in spec]
    for number, name in enumerate(pods):
        groups.setdefault(name if name in known else "", []).append(a_pod(f"pod-{number}", name))
    costs = {name: int(cost) for name, cost in changed_costs(a_spread(spec), {"v": groups}, "v", total).items()}
    assert len(costs) == len(pods), "new pods have no cost yet"
    kept: list[set[int]] = []
    surplus: list[set[int]] = []
    for subset in spec:
        own = [costs[pod["metadata"]["name"]] for pod in groups.get(subset["name"], ())]
        limit = resolve_limit(subset["maxReplicas"], total)
        assert sum(cost < 0 for cost in own) == (0 if limit is None else max(0, len(own) - limit))
        kept.append({cost for cost in own if cost > 0})
        surplus.append({cost for cost in own if cost < 0})
    outside = {costs[pod["metadata"]["name"]] for pod in groups.get("", ())}
    ordered = [values for values in (*kept, *surplus, outside) if values]
    assert all(len(values) == 1 for values in ordered)
    assert all(max(cheaper) < min(dearer) for dearer, cheaper in pairwise(ordered)), "earlier subsets last"


@st.composite
def counted(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    limit = draw(st.integers(0, 12))
    active = draw(st.integers(0, 12))
    pods = [a_pod(f"pod-{number}", "a", phase="Running") for number in range(active)]
    pods += [a_pod(f"ended-{number}", "a", phase="Failed") for number in range(draw(st.integers(0, 3)))]
    named = st.sampled_from([*(f"pod-{number}" for number in range(12)), "ended-0", "x", "y", "z"])
    records = st.dictionaries(named, st.integers(0, 40).map(seconds_ago), max_size=6)
    old = {"name": "a", "creatingPods": draw(records), "deletingPods": draw(records)}
    return {"name": "a", "maxReplicas": limit}, draw(st.permutations(pods)), old


@given(counted())
def test_the_status_equals_a_recount(case: tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]) -> None:
    subset, pods, old = case
    spread = a_spread([subset]) | {"status": {"versionedSubsetStatuses": {"v": [old]}}}
    status = counted_status(spread, {"v": {"a": pods}}, 0, NOW).status["versionedSubsetStatuses"]["v"][0]
    active = {pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Running"}
    seen = {pod["metadata"]["name"] for pod in pods}
    creating = {name for name, time in old["creatingPods"].items() if time > seconds_ago(30) and name not in seen}
    deleting = {name for name, time in old["deletingPods"].items() if time > seconds_ago(15) and name in active}
    assert status["replicas"] == len(active)
    assert set(status.get("creatingPods") or ()) == creating
    assert set(status.get("deletingPods") or ()) == deleting
    limit = subset["maxReplicas"]
    free = max(0, limit - len(active) - len(creating))
    assert free_replicas(subset, status, 0) == free, "what admission uses: a recorded deletion frees nothing"
    recount = max(0, min(limit, limit - len(active) - len(creating) + len(deleting)))
    if len(active) + len(creating) <= limit:
        assert status["missingReplicas"] == recount
    assert recount <= status["missingReplicas"] <= limit


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 200))
def test_percentages_of_the_whole_leave_no_pod_without_a_subset(weights: list[int], total: int) -> None:
    percentages = [*(weight * 100 // max(1, sum(weights)) for weight in weights)]
    percentages[0] += 100 - sum(percentages)
    limits = [resolve_limit(f"{percentage}%", total) or 0 for percentage in percentages]
    assert sum(limits) >= total
    assert all(limit - total * share / 100 < 1 for limit, share in zip(limits, percentages, strict=True))


@given(subsets(), st.integers(0, 12), st.integers(0, 12))
def test_scale_in_undoes_scale_out(spec: list[dict[str, Any]], fewer: int, more: int) -> None:
    spec = [
        {**subset, "maxReplicas": None if "%" in str(subset["maxReplicas"]) else subset["maxReplicas"]}
        for subset in spec
    ]
    direct, there_and_back = SpreadWorkload(a_spread(spec)), SpreadWorkload(a_spread(spec))
    direct.scale(min(fewer, more))
    there_and_back.scale(max(fewer, more))
    there_and_back.scale(min(fewer, more))
    assert there_and_back.counts() == direct.counts()


@given(subsets())
def test_a_conversion_loses_nothing_and_is_made_once(spec: list[dict[str, Any]]) -> None:
    old = [{**subset, "requiredNodeSelectorTerm": {"matchFields": []}} for subset in spec]
    converted = to_hub({"apiVersion": "apps.kruise.io/v1alpha1", "spec": {"subsets": old}})
    assert converted["spec"]["subsets"] == [{**subset, "requiredNodeSelector": {"matchFields": []}} for subset in spec]
    assert to_hub(converted) == converted


def test_the_model_counts_pods_by_their_annotation() -> None:
    workload = SpreadWorkload(a_spread([{"name": "a", "maxReplicas": 2}]))
    workload.scale(3)
    assert Counter(subset_of(pod) for pod in workload.pods.values()) == {"a": 2, None: 1}
