"""Actions of users on a workload lead to the subsets of the vectors."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.spreads import SpreadWorkload, a_spread, owner_of
from tests.support.vectors import each_case, facts, filled, load

VERSIONED = ("Deployment", "ReplicaSet")
UNMANAGED = ("unmanagedPods", "unmanagedDeletionCostAnnotation")


@each_case(load("kruise-ws-scenarios"))
def test_actions_lead_to_the_subsets_of_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], kind="CloneSet", subsets=[], steps=[], targetFilter=None, scheduleStrategy=None)
    kind = str(given["kind"])
    more = {key: given[key] for key in ("targetFilter", "scheduleStrategy") if given[key] is not None}
    workload = SpreadWorkload(
        a_spread(given["subsets"], kind.partition(".")[0], **more),
        owner=owner_of(kind),
        version="v1" if kind in VERSIONED else "",
    )
    for number, (step, expected) in enumerate(zip(given["steps"], case["expected"] or [], strict=True)):
        _act(workload, step or {}, f"v{number + 2}")
        _check(workload, filled(expected))


def _act(workload: SpreadWorkload, step: Mapping[str, Any], version: str) -> None:
    """Do what the step says: new limits and subsets first, then the pods."""
    rest = dict(step)
    spec = workload.spread["spec"]
    subsets = [dict(each) for each in rest.pop("subsets", None) or spec["subsets"]]
    limits = _limits(rest.pop("maxReplicas", None), subsets)
    limits |= {key.removesuffix(".maxReplicas"): rest.pop(key) for key in list(rest) if key.endswith(".maxReplicas")}
    for subset in subsets:
        if subset["name"] in limits:
            subset["maxReplicas"] = limits.pop(subset["name"])
    assert not limits, f"limits of unknown subsets: {limits}"
    order = rest.pop("order", None) or [subset["name"] for subset in subsets]
    subsets.sort(key=lambda subset: order.index(subset["name"]))
    workload.spread = {**workload.spread, "spec": {**spec, "subsets": subsets}}
    action = facts(rest, updateImage=False, replicas=None, scale=None, pods=None, total=None, delete=None, create=None)
    replicas = next((action[key] for key in ("replicas", "scale", "pods") if action[key] is not None), None)
    if action["updateImage"]:
        workload.roll_out(version)
    if isinstance(replicas, Mapping):
        workload.total = sum(replicas.values()) if action["total"] is None else action["total"]
        for role, count in replicas.items():
            workload.create_labelled(_labels(workload, role), count)
    elif replicas is not None:
        workload.scale(replicas, total=action["total"])
    elif action["total"] is not None:
        workload.total = action["total"]
    for name in _names(workload, action["delete"]):
        workload.delete(name)
    for _ in range(action["create"] or 0):
        workload.create()
    workload.reconcile()


def _limits(given: Any, subsets: list[dict[str, Any]]) -> dict[str, Any]:
    """Return new limits by subset: a map, a list in the order of the subsets, or the limit of the first one."""
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    listed = given if isinstance(given, list) else [given]
    return dict(zip((subset["name"] for subset in subsets), listed, strict=False))


def _labels(workload: SpreadWorkload, role: str) -> dict[str, str]:
    """Return the labels of pods of a role: the value of the label that the filter selects."""
    selector = (workload.spread["spec"].get("targetFilter") or {}).get("selector") or {}
    return dict.fromkeys(selector.get("matchLabels") or {"role": ""}, role)


def _names(workload: SpreadWorkload, given: Any) -> Iterable[str]:
    """Return the pods to delete: their names, or how many of each subset."""
    if isinstance(given, Mapping):
        return [name for subset, count in given.items() for name in workload.names_in(subset)[:count]]
    return [given] if isinstance(given, str) else given or ()


def _check(workload: SpreadWorkload, expected: Mapping[str, Any]) -> None:
    statuses = {status["name"]: status for status in workload.spread["status"]["subsetStatuses"]}
    count = len(workload.spread["spec"]["subsets"])
    for name, each in expected.items():
        if name in UNMANAGED:
            continue
        assert name in statuses
        wanted = facts(each, replicas=None, missingReplicas=None, deletionCost=None, schedulable=None)
        assert statuses[name]["replicas"] == workload.counts().get(name, 0)
        for key in ("replicas", "missingReplicas"):
            assert wanted[key] in (None, statuses[name][key]), f"{name}: {key} is {statuses[name][key]}"
        costs = workload.costs(name)
        if isinstance(wanted["deletionCost"], Mapping):
            assert costs == {int(cost): number for cost, number in wanted["deletionCost"].items()}
        elif wanted["deletionCost"] is not None:
            assert set(costs) == set(wanted["deletionCost"]), f"{name}: the costs are {costs}"
            assert len(wanted["deletionCost"]) in (len(costs), costs.total())
    # These pods have no node here, so that no subset can adopt them.
    assert expected.get("unmanagedPods") in (None, workload.counts().get(None, 0))
    if (wanted_cost := expected.get("unmanagedDeletionCostAnnotation")) is not None:
        # OpenKruise writes the cost of pods outside of all subsets at some later reconcile, we at the next one.
        later = {-100 * (count + 1)}
        assert set(workload.costs(None)) <= (later if wanted_cost == "absent" else later | {int(wanted_cost)})
