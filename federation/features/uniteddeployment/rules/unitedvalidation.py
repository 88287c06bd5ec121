"""Validate UnitedDeployments: creation, update and deletion. Pure.

Kubernetes' rules for selectors, node terms, tolerations and pod templates belong to the API server, so the caller
passes them as `UnitedRules`. Results are causes of a 422; an empty list means that the object is valid.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery import dotpaths, nameformats
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    immutable,
    invalid,
    non_negative,
    not_found,
    one_of,
    problems_of,
    required,
)
from federation.apimachinery.selectors import SelectorError, compile_label_selector
from federation.features.uniteddeployment.names import DELETE_PROTECTION_LABEL
from federation.features.uniteddeployment.rules.clustertargets import ClusterName, target_of
from federation.features.uniteddeployment.rules.countvalidation import validate_counts
from federation.features.uniteddeployment.rules.strategy import TYPES, strategy_of
from federation.features.uniteddeployment.rules.uniteddefaults import MANUAL
from federation.features.uniteddeployment.rules.workloadkinds import KINDS, WorkloadKind, kind_of
from federation.planning.corerules import CoreRules, Rule

Fields = Mapping[str, Any]

_CHANGEABLE = {
    "statefulSetTemplate": {
        "template",
        "updateStrategy",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "ordinals",
    },
    "advancedStatefulSetTemplate": {"template", "updateStrategy"},
}
"""Fields of the workload's spec that an update may change, for kinds that fix the others."""
_TEMPLATE = "spec.template"
_SUBSETS = "spec.topology.subsets"


@dataclass(frozen=True, slots=True)
class UnitedRules(CoreRules):
    """Kubernetes' rules for parts of a UnitedDeployment."""

    pod_template: Rule


def validate_united(
    united: Fields, rules: UnitedRules, *, clusters: Collection[ClusterName] | None = None, is_strict: bool = False
) -> Causes:
    """Validate a UnitedDeployment.

    `clusters` are the registered clusters that `targetCluster` can name; None does not check the field. `is_strict`
    refuses percentages that OpenKruise rounds to another sum than the total.
    """
    spec = united.get("spec") or {}
    causes = non_negative("spec.replicas", spec.get("replicas"))
    causes += _validate_selector(spec.get("selector") or {}, rules)
    causes += _validate_template(spec, rules)
    causes += _validate_topology(spec, rules, clusters)
    subsets: Sequence[Fields] = (spec.get("topology") or {}).get("subsets") or ()
    named = [{**subset, "name": subset.get("name") or ""} for subset in subsets]
    causes += validate_counts(spec.get("replicas"), named, _SUBSETS, is_strict=is_strict)
    return causes + _validate_update_strategy(spec)


def validate_update(new: Fields, old: Fields) -> Causes:
    """Validate a change; the new object must also be valid by itself."""
    causes: Causes = []
    before = {subset.get("name"): subset for subset in _subsets(old)}
    for index, subset in enumerate(_subsets(new)):
        earlier = before.get(subset.get("name"))
        if earlier is None:
            continue
        for field in ("nodeSelectorTerm", "nodeSelector", "tolerations"):
            causes += immutable(f"{_SUBSETS}[{index}].{field}", subset.get(field) or None, earlier.get(field) or None)
        if target_of(subset) != target_of(earlier):
            text = "the target cluster of a subset cannot change; add a subset with another name and remove this one"
            causes.append(forbidden(f"{_SUBSETS}[{index}].targetCluster", text))
    for template, changeable in _CHANGEABLE.items():
        paths = ("spec", "template", template, "spec")
        after, earlier = dotpaths.get(new, paths) or {}, dotpaths.get(old, paths) or {}
        if dotpaths.get(new, paths[:-1]) is None or dotpaths.get(old, paths[:-1]) is None:
            continue
        for field in sorted((after.keys() | earlier.keys()) - changeable):
            if (after.get(field) or None) != (earlier.get(field) or None):
                listed = ", ".join(sorted(changeable))
                causes.append(
                    forbidden(f"{_TEMPLATE}.{template}.spec.{field}", f"updates can change {listed}, and nothing else")
                )
    return causes


def deletion_problem(united: Fields) -> str:
    """Return why the object is protected from deletion, "" if it is not."""
    protection = (united["metadata"].get("labels") or {}).get(DELETE_PROTECTION_LABEL)
    if protection == "Always":
        return f"the label {DELETE_PROTECTION_LABEL}=Always forbids the deletion; remove it first"
    replicas = (united.get("spec") or {}).get("replicas")
    if protection == "Cascading" and replicas != 0:
        return (
            f"the label {DELETE_PROTECTION_LABEL}=Cascading forbids the deletion while spec.replicas is not 0:"
            " scale to 0 or remove the label"
        )
    return ""


def _subsets(united: Fields) -> Sequence[Fields]:
    return dotpaths.get(united, ("spec", "topology", "subsets")) or ()


def _validate_selector(selector: Fields, rules: UnitedRules) -> Causes:
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return [invalid("spec.selector", selector, "empty selector is not valid for UnitedDeployment")]
    return rules.label_selector(selector, "spec.selector")


def _validate_template(spec: Fields, rules: UnitedRules) -> Causes:
    templates = spec.get("template") or {}
    given = [kind for kind in KINDS if templates.get(kind.template) is not None]
    if len(given) != 1:
        listed = ", ".join(kind.template for kind in KINDS)
        return [required(_TEMPLATE, f"exactly one of {listed} must be set")]
    kind = given[0]
    if kind.template == "cloneSetTemplate":
        return []  # OpenKruise does not validate it either; the CloneSet's own validation does
    return _validate_workload(templates[kind.template], kind, spec.get("selector") or {}, rules)


def _validate_workload(template: Fields, kind: WorkloadKind, selector: Fields, rules: UnitedRules) -> Causes:
    at = f"{_TEMPLATE}.{kind.template}"
    workload = template.get("spec") or {}
    pods = workload.get("template") or {}
    causes: Causes = []
    try:
        wanted = compile_label_selector(selector)
    except SelectorError:
        return causes  # reported for the selector itself
    for labeled, field in ((template, f"{at}.metadata.labels"), (pods, f"{at}.spec.template.metadata.labels")):
        labels = (labeled.get("metadata") or {}).get("labels") or {}
        if not wanted.matches(labels):
            causes.append(invalid(field, labels, "`selector` does not match template `labels`"))
    causes += rules.pod_template(pods, f"{at}.spec.template")
    if workload.get("replicas") is not None:
        causes.append(forbidden(f"{at}.spec.replicas", "the UnitedDeployment sets the replicas; remove the field"))
    if kind.is_stateful and dotpaths.get({"spec": workload}, kind.partition_path) is not None:
        path = ".".join(kind.partition_path)
        causes.append(forbidden(f"{at}.{path}", "use spec.updateStrategy.manualUpdate.partitions instead"))
    return causes


def _validate_topology(spec: Fields, rules: UnitedRules, clusters: Collection[ClusterName] | None) -> Causes:
    topology = spec.get("topology") or {}
    at = "spec.topology.scheduleStrategy"
    causes = one_of(f"{at}.type", (topology.get("scheduleStrategy") or {}).get("type"), TYPES)
    strategy, kind = strategy_of(spec), kind_of(spec.get("template") or {})
    if strategy.reserves_pods and kind is not None and not kind.max_unavailable_path:
        text = "only deploymentTemplate and cloneSetTemplate can reserve pods"
        causes.append(forbidden(f"{at}.adaptive.reserveUnschedulablePods", text))
    seen: set[str] = set()
    for index, subset in enumerate(topology.get("subsets") or ()):
        field = f"{_SUBSETS}[{index}]"
        name = subset.get("name") or ""
        if not name:
            causes.append(required(f"{field}.name"))
        elif name in seen:
            causes.append(duplicate(f"{field}.name", name))
        else:
            causes += problems_of(f"{field}.name", name, nameformats.dns1123_label(name))
        seen.add(name)
        causes += _validate_nodes(subset, field, rules)
        for place, toleration in enumerate(subset.get("tolerations") or ()):
            causes += rules.toleration(toleration, f"{field}.tolerations[{place}]")
        if strategy.is_adaptive and subset.get("replicas") is not None:
            text = "not with the Adaptive strategy; use minReplicas and maxReplicas"
            causes.append(forbidden(f"{field}.replicas", text))
        target = target_of(subset)
        if target is not None and clusters is not None and target not in clusters:
            causes.append(not_found(f"{field}.targetCluster", "/".join(target)))
    return causes


def _validate_nodes(subset: Fields, field: str, rules: UnitedRules) -> Causes:
    causes = rules.required_term(subset.get("nodeSelectorTerm") or {}, f"{field}.nodeSelectorTerm")
    terms: Sequence[Fields] = (subset.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        causes += rules.required_term(term, f"{field}.nodeSelector.nodeSelectorTerms[{index}]")
    if terms and subset.get("nodeSelectorTerm"):
        causes.append(forbidden(f"{field}.nodeSelector", "not together with nodeSelectorTerm"))
    return causes


def _validate_update_strategy(spec: Fields) -> Causes:
    strategy = spec.get("updateStrategy") or {}
    causes = one_of("spec.updateStrategy.type", strategy.get("type"), ("", MANUAL))
    known = {subset.get("name") for subset in (spec.get("topology") or {}).get("subsets") or ()}
    at = "spec.updateStrategy.manualUpdate.partitions"
    for name, partition in ((strategy.get("manualUpdate") or {}).get("partitions") or {}).items():
        if name not in known:
            causes.append(invalid(at, name, "is not the name of a subset"))
        causes += non_negative(f"{at}[{name}]", partition)
    return causes
