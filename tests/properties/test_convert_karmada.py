"""Nothing of a manifest for Karmada is lost in silence, and what comes out are manifests of our kinds."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.api.v1alpha1.deliverysuspension import DeliverySuspensionSpec
from federation.api.v1alpha1.overridepolicy import OverridePolicySpec
from federation.api.v1alpha1.propagationpolicy import PropagationPolicySpec
from federation.apimachinery.errors import ConfigurationError
from federation.features.clusterrules.model import ClusterTaintPolicySpec, RemedySpec
from federation.features.convert.rules.karmada import convert
from federation.features.convert.rules.model import Conversion
from federation.features.cronfederatedhpa.model import CronFederatedHPASpec

Path = tuple[str | int, ...]
NAMES = st.sampled_from(["a", "b", "c", "d"])
WORDS = st.sampled_from(["x", "y", "z"])
COUNTS = st.integers(1, 9)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def listed(items: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, min_size=1, max_size=most)


def unique(items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, min_size=1, max_size=3, unique=True)


REQUIREMENTS = st.fixed_dictionaries({"key": WORDS, "operator": st.just("In"), "values": unique(WORDS)})
FIELD_REQUIREMENTS = st.fixed_dictionaries(
    {"key": st.sampled_from(["region", "zone", "provider"]), "operator": st.just("In"), "values": unique(WORDS)}
)
LABEL_SELECTORS = some(matchLabels=st.dictionaries(WORDS, WORDS, min_size=1), matchExpressions=listed(REQUIREMENTS))
AFFINITY = {
    "clusterNames": unique(NAMES),
    "exclude": unique(st.sampled_from(["e", "f"])),
    "labelSelector": LABEL_SELECTORS,
    "fieldSelector": some(matchExpressions=listed(FIELD_REQUIREMENTS)),
}
AFFINITIES = some(**AFFINITY)
SELECTORS = listed(
    st.fixed_dictionaries(
        {"apiVersion": st.just("apps/v1"), "kind": st.sampled_from(["Deployment", "DaemonSet"])},
        optional={"name": NAMES, "namespace": st.just("x"), "labelSelector": LABEL_SELECTORS},
    )
)
FAILOVER = some(
    cluster=some(tolerationSeconds=COUNTS, purgeMode=st.sampled_from(["Directly", "Gracefully"])),
    application=some(
        decisionConditions=some(tolerationSeconds=COUNTS),
        purgeMode=st.sampled_from(["Directly", "Gracefully", "Never", "Immediately", "Graciously"]),
        gracePeriodSeconds=COUNTS,
        statePreservation=some(rules=listed(some(aliasLabelName=WORDS, jsonPath=WORDS))),
    ),
)
PLACEMENTS = some(
    clusterAffinity=AFFINITIES,
    clusterAffinities=listed(
        st.fixed_dictionaries(
            {"affinityName": WORDS},
            optional={
                **AFFINITY,
                "overflowAffinities": listed(st.fixed_dictionaries({"affinityName": WORDS}, optional=AFFINITY)),
            },
        )
    ),
    clusterTolerations=listed(
        some(
            key=st.sampled_from(["k", "cluster.karmada.io/not-ready", "cluster.karmada.io/other"]),
            operator=st.just("Exists"),
            value=WORDS,
            effect=st.just("NoExecute"),
            tolerationSeconds=COUNTS,
        )
    ),
    spreadConstraints=listed(
        some(
            spreadByField=st.sampled_from(["cluster", "region", "zone", "provider"]),
            spreadByLabel=WORDS,
            maxGroups=COUNTS,
            minGroups=COUNTS,
        ),
        most=1,
    ),
    replicaScheduling=some(
        replicaSchedulingType=st.sampled_from(["Duplicated", "Divided"]),
        replicaDivisionPreference=st.sampled_from(["Aggregated", "Weighted"]),
        weightPreference=some(
            dynamicWeight=st.just("AvailableReplicas"),
            staticWeightList=st.lists(
                st.fixed_dictionaries({"targetCluster": AFFINITIES, "weight": COUNTS}), min_size=1, max_size=1
            ),
        ),
    ),
    workloadAffinity=some(affinity=some(groupByLabelKey=WORDS)),
)
POLICIES = st.fixed_dictionaries(
    {"resourceSelectors": SELECTORS},
    optional={
        "placement": PLACEMENTS,
        "failover": FAILOVER,
        "propagateDeps": st.booleans(),
        "priority": st.integers(0, 3),
        "preemption": st.sampled_from(["Always", "Never"]),
        "dependentOverrides": unique(WORDS),
        "conflictResolution": st.sampled_from(["Abort", "Overwrite"]),
        "activationPreference": st.just("Lazy"),
        "suspension": some(
            dispatching=st.booleans(), dispatchingOnClusters=some(clusterNames=unique(NAMES)), scheduling=st.booleans()
        ),
        "preserveResourcesOnDeletion": st.booleans(),
        "schedulePriority": some(priorityClassSource=WORDS, priorityClassName=WORDS),
        "schedulerName": st.sampled_from(["default-scheduler", "other"]),
        "unknownField": some(deep=listed(WORDS)),
    },
)
LISTS = st.fixed_dictionaries(
    {"containerName": NAMES, "operator": st.sampled_from(["add", "remove"]), "value": unique(WORDS)}
)
MAPS = st.fixed_dictionaries(
    {
        "operator": st.sampled_from(["add", "remove", "replace"]),
        "value": st.dictionaries(WORDS, WORDS, min_size=1),
    }
)
CHANGES = st.fixed_dictionaries(
    {"subPath": st.just("/x"), "operator": st.sampled_from(["add", "remove", "replace"]), "value": COUNTS}
)
OVERRIDERS = some(
    plaintext=listed(
        st.fixed_dictionaries(
            {"path": st.just("/spec/x"), "operator": st.sampled_from(["add", "remove", "replace"]), "value": COUNTS}
        )
    ),
    imageOverrider=listed(
        st.fixed_dictionaries(
            {
                "component": st.sampled_from(["Registry", "Repository", "Tag"]),
                "operator": st.sampled_from(["add", "remove", "replace"]),
                "value": st.sampled_from(["v1", "sha256:" + "a" * 64]),
            },
            optional={"predicate": st.fixed_dictionaries({"path": st.just("/spec/image")})},
        )
    ),
    commandOverrider=listed(LISTS),
    argsOverrider=listed(LISTS),
    labelsOverrider=listed(MAPS),
    annotationsOverrider=listed(MAPS),
    fieldOverrider=listed(
        st.fixed_dictionaries({"fieldPath": st.just("/data/a"), "yaml": listed(CHANGES)}, optional={"x": WORDS})
    ),
    unknownField=WORDS,
)
OVERRIDES = some(
    resourceSelectors=SELECTORS,
    overrideRules=listed(some(targetCluster=AFFINITIES, overriders=OVERRIDERS)),
    targetCluster=AFFINITIES,
    overriders=OVERRIDERS,
)
TARGETS = st.fixed_dictionaries(
    {"apiVersion": WORDS, "kind": st.sampled_from(["Deployment", "CloneSet"]), "name": NAMES}
)
AUTOSCALERS = st.fixed_dictionaries(
    {"scaleTargetRef": TARGETS, "maxReplicas": COUNTS},
    optional={
        "minReplicas": COUNTS,
        "metrics": listed(some(type=st.sampled_from(["Resource", "Pods"]), resource=some(name=WORDS))),
        "behavior": some(scaleDown=some(stabilizationWindowSeconds=COUNTS)),
        "unknownField": WORDS,
    },
)
CRONS = st.fixed_dictionaries(
    {
        "scaleTargetRef": TARGETS,
        "rules": st.lists(
            st.fixed_dictionaries(
                {"name": NAMES, "schedule": st.just("0 8 * * *")},
                optional={
                    "targetReplicas": COUNTS,
                    "suspend": st.booleans(),
                    "timeZone": st.just("Europe/Berlin"),
                    "failedHistoryLimit": COUNTS,
                    "successfulHistoryLimit": COUNTS,
                    "unknownField": WORDS,
                },
            ),
            min_size=1,
            max_size=2,
        ),
    }
)
QUOTAS = st.fixed_dictionaries(
    {"overall": st.dictionaries(st.sampled_from(["cpu", "memory", "limits.cpu"]), WORDS, min_size=1)},
    optional={"staticAssignments": listed(some(clusterName=NAMES)), "unknownField": WORDS},
)
CONDITIONS = listed(
    st.fixed_dictionaries(
        {"conditionType": WORDS, "operator": st.sampled_from(["In", "NotIn"]), "statusValues": unique(WORDS)}
    )
)
TAINT_POLICIES = st.fixed_dictionaries(
    {
        "taints": listed(
            st.fixed_dictionaries({"key": WORDS, "effect": st.just("NoExecute")}, optional={"value": WORDS})
        ),
        "addOnConditions": CONDITIONS,
    },
    optional={"targetClusters": AFFINITIES, "removeOnConditions": CONDITIONS, "unknownField": WORDS},
)
MATCHES = st.fixed_dictionaries(
    {"conditionType": WORDS, "operator": st.sampled_from(["Equal", "NotEqual"]), "conditionStatus": WORDS}
)
RULED = st.fixed_dictionaries(
    {"actions": st.just(["TrafficControl"])},
    optional={
        "clusterAffinity": some(clusterNames=unique(NAMES)),
        "decisionMatches": listed(st.fixed_dictionaries({"clusterConditionMatch": MATCHES})),
        "unknownField": WORDS,
    },
)
KINDS = {
    "ClusterTaintPolicy": (TAINT_POLICIES, ClusterTaintPolicySpec),
    "Remedy": (RULED, RemedySpec),
    "PropagationPolicy": (POLICIES, PropagationPolicySpec),
    "ClusterPropagationPolicy": (POLICIES, PropagationPolicySpec),
    "OverridePolicy": (OVERRIDES, OverridePolicySpec),
    "ClusterOverridePolicy": (OVERRIDES, OverridePolicySpec),
    "FederatedHPA": (AUTOSCALERS, None),
    "FederatedResourceQuota": (QUOTAS, None),
    "CronFederatedHPA": (CRONS, CronFederatedHPASpec),
}


@pytest.mark.parametrize("kind", KINDS)
@examples(25)
@given(data=st.data())
def test_every_field_is_used_or_noted(kind: str, data: st.DataObject) -> None:
    specs, model = KINDS[kind]
    namespace = {} if kind.startswith("Cluster") else {"namespace": "x"}
    manifest = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "n", **namespace, "labels": {"app": "a"}, "ownerReferences": [{"name": "o"}]},
        "spec": data.draw(specs),
    }
    original = copy.deepcopy(manifest)
    result = convert([manifest])
    assert manifest == original, "the input is changed"
    for each in result.objects:
        chosen = DeliverySuspensionSpec if "Suspension" in each["kind"] else model
        if chosen is not None:
            chosen.model_validate(each["spec"])
    noted = {note.field for note in result.notes}
    for path in leaves(manifest):
        if path in (("apiVersion",), ("kind",)) or path[-1] == "affinityName":
            continue  # what the manifest is, and a name that means nothing
        text = to_text(path)
        if not any(text == field or text.startswith((f"{field}.", f"{field}[")) for field in noted):
            assert changed(manifest, path) != result, f"{text} is neither used nor noted"


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if entries is None:
        yield path
        return
    for key, item in entries:
        yield from leaves(item, (*path, key))


def to_text(path: Path) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def changed(manifest: dict[str, Any], path: Path) -> Conversion | None:
    """Return the conversion after the value at the path has changed; None if that is an error."""
    copied: Any = copy.deepcopy(manifest)
    holder = copied
    for key in path[:-1]:
        holder = holder[key]
    value = holder[path[-1]]
    holder[path[-1]] = not value if isinstance(value, bool) else value + (1 if isinstance(value, int) else "x")
    try:
        return convert([copied])
    except ConfigurationError:
        return None
