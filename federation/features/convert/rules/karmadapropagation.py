"""Karmada's PropagationPolicy and ClusterPropagationPolicy as ours. Pure.

Static weights are taken over as they are. What has another meaning here is noted, with what to use instead.
"""

from collections.abc import Iterable

from federation.api import names
from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader
from federation.features.convert.rules.karmadaselection import (
    FIELD_LABELS,
    ClusterChoice,
    to_cluster_choice,
    to_resource_selectors,
)
from federation.planning.failover.handover import path_problem

_TAINTS = {
    "cluster.karmada.io/not-ready": names.TAINT_NOT_READY,
    "cluster.karmada.io/unreachable": names.TAINT_UNREACHABLE,
}
_PURGE_MODES = {
    "Directly": "Directly",
    "Immediately": "Directly",
    "Graciously": "Graciously",
    "Gracefully": "Graciously",
    "Never": "Never",
}
"""Karmada's modes, and the names that they had in earlier versions."""
_UNHEALTHY_S = 300
"""Karmada's default of failover.application.decisionConditions.tolerationSeconds."""
_DROPPED: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    ("dependentOverrides", "apply override policies before the objects; they are printed first", ([],)),
    ("conflictResolution", "take over objects that exist in members with: fedctl adopt KIND/NAME", ("Abort",)),
    ("activationPreference", "new placements take effect at once; see them before with: fedctl plan -f FILE", ("",)),
    (
        "preserveResourcesOnDeletion",
        f"annotate the objects with {names.ORPHAN}: all, or delete them with --cascade=orphan",
        (False,),
    ),
    (
        "schedulePriority",
        "has no counterpart by name of a PriorityClass; give the number in spec.schedulingPriority",
        ({},),
    ),
    (
        "schedulerName",
        "there is one scheduler; describe the difference in a SchedulingProfile, named in spec.schedulingProfile",
        ("", "default-scheduler"),
    ),
)
"""Fields without a counterpart: name, what to do instead, and values that mean the same as their absence."""


def to_policy_spec(spec: FieldReader, namespace: str) -> Object:
    """Return the spec of our policy; `namespace` is empty for a ClusterPropagationPolicy."""
    placement = spec.child("placement")
    groups = _groups(placement)
    choice = ClusterChoice() if groups else to_cluster_choice(placement.child("clusterAffinity"))
    division = _division(placement, choice)
    follows = [spec.flag("propagateDeps"), spec.flag("association")]
    converted: Object = {
        "resourceSelectors": to_resource_selectors(spec, namespace),
        **division,
        **choice.selection(),
        "clusterGroups": groups,
        **_workloads(placement.child("workloadAffinity")),
        "tolerations": [_toleration(each) for each in placement.children("clusterTolerations")],
        **_spread(placement.children("spreadConstraints")),
        "disableFollowerScheduling": not any(follows) or None,
        "priority": spec.number("priority") or None,
        # The default of Karmada is Never, and ours is Always.
        "preemption": None if spec.one_of("preemption", ("Always", "Never"), "Never") == "Always" else "Never",
        **_failover(spec.child("failover"), is_divided=division["schedulingMode"] == "Divide"),
    }
    for key, message, same in _DROPPED:
        spec.drop(key, message, unless=same)
    return {key: value for key, value in converted.items() if value not in (None, [], {})}


def _groups(placement: FieldReader) -> list[Object]:
    """Return our ordered groups of clusters; a later one is used if the earlier ones cannot take the workload.

    What overflows from a group goes into those that follow it as Overflow.
    """
    converted = []
    for index, group in enumerate(placement.children("clusterAffinities")):
        converted.append(_group(group, f"group-{index + 1}"))
        for number, overflow in enumerate(group.children("overflowAffinities")):
            converted.append({**_group(overflow, f"group-{index + 1}-{number + 1}"), "when": "Overflow"})
    return converted


def _group(group: FieldReader, name: str) -> Object:
    choice = to_cluster_choice(group)
    entry = {"name": group.text("affinityName") or name, **choice.selection()}
    return {**entry, "clusters": choice.names} if choice.names else entry


def _workloads(affinity: FieldReader) -> Object:
    """Return our rules about other workloads: those with the same value of a label, cluster by cluster."""
    converted: Object = {}
    for key, field in (("affinity", "workloadAffinity"), ("antiAffinity", "workloadAntiAffinity")):
        if label := affinity.child(key).text("groupByLabelKey"):
            converted[field] = {"required": [{"matchLabelKeys": [label]}]}
    return converted


def _division(placement: FieldReader, choice: ClusterChoice) -> Object:
    """Return schedulingMode, replicasStrategy and placement; the entry "*" stands for clusters without an entry."""
    strategy = placement.child("replicaScheduling")
    default = "Divided" if placement.has("replicaScheduling") else "Duplicated"
    plain = [{"cluster": name} for name in choice.names]
    if strategy.one_of("replicaSchedulingType", ("Duplicated", "Divided"), default) == "Duplicated":
        for key in ("replicaDivisionPreference", "weightPreference"):
            strategy.drop(key, "has no effect with replicaSchedulingType: Duplicated", unless=({},))
        return {"schedulingMode": "Duplicate", "placement": plain}
    if strategy.one_of("replicaDivisionPreference", ("Aggregated", "Weighted"), "Weighted") == "Aggregated":
        strategy.drop("weightPreference", "has no effect with replicaDivisionPreference: Aggregated")
        return {"schedulingMode": "Divide", "replicasStrategy": "Binpack", "placement": plain}
    weights = strategy.child("weightPreference")
    if weights.has("dynamicWeight"):
        weights.one_of("dynamicWeight", ("AvailableReplicas",))
        weights.drop("staticWeightList", "has no effect beside dynamicWeight")
        return {"schedulingMode": "Divide", "placement": plain}
    found = _static_weights(weights)
    weighted = {name: weight for name, weight in found.items() if not choice.names or name in choice.names}
    if others := sorted(found.keys() - weighted.keys()):
        weights.note("staticWeightList", f"{', '.join(others)}: not among the clusters of the policy")
    if not weighted:
        weighted = dict.fromkeys(choice.names or ("*",), 1)
    listed = choice.names or list(dict.fromkeys((*weighted, "*")))
    return {
        "schedulingMode": "Divide",
        "placement": [
            {"cluster": name, **({"preferences": {"weight": weighted[name]}} if name in weighted else {})}
            for name in listed
        ],
    }


def _static_weights(weights: FieldReader) -> dict[str, int]:
    """Return the weight of each named cluster; the highest counts if several entries match, as in Karmada."""
    found: dict[str, int] = {}
    for entry in weights.children("staticWeightList"):
        target = to_cluster_choice(entry.child("targetCluster"))
        weight = entry.number("weight", 0) or 0
        if not target.names or target.selection():
            entry.note(
                "targetCluster",
                "a weight belongs to a cluster by its name; list the clusters in spec.placement with"
                f" preferences.weight: {weight}",
            )
        for name in target.names:
            found[name] = max(weight, found.get(name, 0))
    return found


def _spread(constraints: Iterable[FieldReader]) -> Object:
    """Return our limits for numbers of clusters and of groups of them; the most clusters have a field of their own."""
    converted: Object = {"spreadConstraints": []}
    for constraint in constraints:
        label = constraint.text("spreadByLabel")
        by = constraint.one_of("spreadByField", ("cluster", *FIELD_LABELS), "region" if label else "cluster")
        if constraint.has("spreadByField"):
            constraint.drop("spreadByLabel", "has no effect beside spreadByField", unless=("",))
            label = FIELD_LABELS.get(by, "")
        least, most = constraint.number("minGroups") or 1, constraint.number("maxGroups") or 0
        if label:
            limits = {"topologyKey": label, "minGroups": least, **({"maxGroups": most} if most else {})}
            converted["spreadConstraints"].append(limits)
            continue
        if most:
            converted["maxClusters"] = most
        if least > 1:
            converted["spreadConstraints"].append({"minGroups": least})
    return converted


def _toleration(toleration: FieldReader) -> Object:
    fields = ("key", "operator", "value", "effect")
    converted: Object = {key: value for key in fields if (value := toleration.text(key))}
    if (seconds := toleration.number("tolerationSeconds")) is not None:
        converted["tolerationSeconds"] = seconds
    key = converted.get("key", "")
    if key in _TAINTS:
        converted["key"] = _TAINTS[key]
    elif key.partition("/")[0].endswith("karmada.io"):
        toleration.note("key", f"no cluster has the taint {key} here")
    return converted


def _failover(failover: FieldReader, *, is_divided: bool) -> Object:
    converted: Object = {}
    if failover.has("cluster"):
        cluster = failover.child("cluster")
        converted["failover"] = {"mode": "Auto"}
        if (seconds := cluster.number("tolerationSeconds")) is not None:
            converted["failover"]["graceSeconds"] = seconds
        cluster.drop("purgeMode", "replicas leave a lost cluster as soon as others replace them")
        if rules := _state_rules(cluster):
            converted["failover"]["statePreservation"] = {"rules": rules}
    if not failover.has("application"):
        return converted
    application = failover.child("application")
    seconds = application.child("decisionConditions").number("tolerationSeconds", _UNHEALTHY_S) or _UNHEALTHY_S
    if is_divided:  # replicas without a node are unhealthy there, too, and move one by one here
        converted["autoMigration"] = {"when": {"podUnschedulableFor": f"{seconds}s"}}
    moves: Object = {"tolerationSeconds": seconds}
    moves["purgeMode"] = _PURGE_MODES[application.one_of("purgeMode", tuple(_PURGE_MODES), "Graciously")]
    if (grace_s := application.number("gracePeriodSeconds")) is not None:
        moves["gracePeriodSeconds"] = grace_s
    if rules := _state_rules(application):
        moves["statePreservation"] = {"rules": rules}
    converted.setdefault("failover", {})["application"] = moves
    return converted


def _state_rules(behavior: FieldReader) -> list[Object]:
    rules = [_state_rule(rule) for rule in behavior.child("statePreservation").children("rules")]
    return [rule for rule in rules if all(rule.values())]


def _state_rule(rule: FieldReader) -> Object:
    path, label = rule.text("jsonPath"), rule.text("aliasLabelName")
    if not (path and label):
        rule.note("", "left out: it needs jsonPath and aliasLabelName")
    elif problem := path_problem(path):
        rule.note("jsonPath", problem)
    return {"aliasLabelName": label, "jsonPath": path}
