"""Karmada's kinds as ours: one manifest set, and each field that is more than a rename."""

from typing import Any

import pytest
import yaml
from tests.support.sources import ROOT

from federation.apimachinery.errors import ConfigurationError
from federation.features.convert.rules.karmada import convert
from federation.features.convert.rules.model import Note

SELECTORS = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
STATIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"staticWeightList": [{"targetCluster": {"clusterNames": ["east"]}, "weight": 2}]},
}


def policy(kind: str = "PropagationPolicy", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", **({} if kind.startswith("Cluster") else {"namespace": "shop"})}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"resourceSelectors": SELECTORS, **spec},
    }


def placed(**placement: Any) -> tuple[dict[str, Any], list[Note]]:
    (found,), notes = converted(policy(placement=placement, propagateDeps=True))
    assert found["spec"].pop("resourceSelectors") == SELECTORS
    assert found["spec"].pop("preemption") == "Never"
    return found["spec"], notes


def converted(*manifests: dict[str, Any]) -> tuple[list[dict[str, Any]], list[Note]]:
    result = convert(manifests)
    return result.objects, result.notes


def overridden(**overriders: Any) -> tuple[dict[str, Any], list[Note]]:
    (found,), notes = converted(policy("OverridePolicy", overrideRules=[{"overriders": overriders}]))
    (rule,) = found["spec"]["overrideRules"]
    return rule.get("overriders", {}), notes


def test_the_example_is_converted_and_its_differences_are_noted() -> None:
    files = (ROOT / "examples/karmada" / f"{name}.yaml" for name in ("policies", "autoscaling", "interpreter"))
    manifests = [manifest for file in files for manifest in yaml.safe_load_all(file.read_text())]
    objects, notes = converted(*manifests)
    assert [each["kind"] for each in objects] == [
        "OverridePolicy",
        "PropagationPolicy",
        "HorizontalPodAutoscaler",
        "CronFederatedHPA",
        "FederatedTypeConfig",
    ]
    assert [(note.source, note.field) for note in notes] == [
        ("ResourceInterpreterCustomization crawler", "spec.customizations.healthInterpretation"),
        ("ResourceInterpreterCustomization crawler", "spec.target"),
    ]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param({}, {}, id="no condition takes every cluster"),
        pytest.param({"clusterNames": ["a", "b"]}, {"placement": [{"cluster": "a"}, {"cluster": "b"}]}, id="names"),
        pytest.param(
            {"clusterNames": ["a", "b"], "exclude": ["b"]},
            {"placement": [{"cluster": "a"}]},
            id="excluded of the named",
        ),
        pytest.param(
            {"exclude": ["b"]},
            {
                "clusterAffinity": [
                    {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["b"]}]},
                ]
            },
            id="excluded of all",
        ),
        pytest.param(
            {
                "labelSelector": {
                    "matchLabels": {"env": "live"},
                    "matchExpressions": [{"key": "gpu", "operator": "Exists"}],
                }
            },
            {
                "clusterSelector": {"env": "live"},
                "clusterAffinity": [{"matchExpressions": [{"key": "gpu", "operator": "Exists", "values": []}]}],
            },
            id="labels",
        ),
    ],
)
def test_clusters_are_selected_by_the_same_conditions(affinity: Any, expected: Any) -> None:
    assert placed(clusterAffinity=affinity) == ({"schedulingMode": "Duplicate", **expected}, [])


def test_a_field_of_clusters_becomes_a_label() -> None:
    expression = {"key": "region", "operator": "In", "values": ["eu"]}
    spec, notes = placed(clusterAffinity={"fieldSelector": {"matchExpressions": [expression]}})
    key = "topology.kubernetes.io/region"
    assert spec["clusterAffinity"] == [{"matchExpressions": [{"key": key, "operator": "In", "values": ["eu"]}]}]
    assert [note.field for note in notes] == [
        "spec.placement.clusterAffinity.fieldSelector.matchExpressions[0].key",
    ]
    assert f"--labels {key}=VALUE" in notes[0].message


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        pytest.param(None, {"schedulingMode": "Duplicate"}, id="absent"),
        pytest.param({"replicaSchedulingType": "Duplicated"}, {"schedulingMode": "Duplicate"}, id="duplicated"),
        pytest.param(
            {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
            {"schedulingMode": "Divide", "replicasStrategy": "Binpack"},
            id="aggregated",
        ),
        pytest.param(
            {"replicaSchedulingType": "Divided", "weightPreference": {"dynamicWeight": "AvailableReplicas"}},
            {"schedulingMode": "Divide"},
            id="by capacity",
        ),
    ],
)
def test_the_division_of_replicas(scheduling: Any, expected: Any) -> None:
    spec, notes = placed(clusterAffinity={"clusterNames": ["east"]}, replicaScheduling=scheduling)
    assert (spec, notes) == ({**expected, "placement": [{"cluster": "east"}]}, [])


@pytest.mark.parametrize(
    ("names", "scheduling", "expected"),
    [
        pytest.param(
            ["east", "west"], STATIC, {"east": 2, "west": None}, id="a named cluster without weight gets none"
        ),
        pytest.param([], STATIC, {"east": 2, "*": None}, id="no cluster is named"),
        pytest.param([], {}, {"*": 1}, id="no cluster and no weight"),
        pytest.param(["x", "y"], {}, {"x": 1, "y": 1}, id="no weights divide evenly"),
        pytest.param(["x"], STATIC, {"x": 1}, id="weights of other clusters do not count"),
    ],
)
def test_static_weights(names: list[str], scheduling: Any, expected: dict[str, int | None]) -> None:
    spec, _ = placed(clusterAffinity={"clusterNames": names}, replicaScheduling=scheduling)
    weights = {each["cluster"]: each.get("preferences", {}).get("weight") for each in spec["placement"]}
    assert (spec["schedulingMode"], weights) == ("Divide", expected)


def test_the_highest_weight_of_a_cluster_counts() -> None:
    entries = [{"targetCluster": {"clusterNames": ["east"]}, "weight": weight} for weight in (1, 5, 3)]
    spec, _ = placed(replicaScheduling={**STATIC, "weightPreference": {"staticWeightList": entries}})
    assert spec["placement"] == [{"cluster": "east", "preferences": {"weight": 5}}, {"cluster": "*"}]


def test_groups_of_clusters_keep_their_order() -> None:
    main = {"affinityName": "main", "clusterNames": ["a", "b"]}
    backup = {"affinityName": "backup", "labelSelector": {"matchLabels": {"tier": "backup"}}, "exclude": ["c"]}
    spec, notes = placed(clusterAffinities=[main, backup])
    assert "placement" not in spec
    excluded = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["c"]}]}
    assert spec["clusterGroups"] == [
        {"name": "main", "clusters": ["a", "b"]},
        {"name": "backup", "clusterSelector": {"tier": "backup"}, "clusterAffinity": [excluded]},
    ]
    assert not notes


def test_what_overflows_from_a_group_goes_into_those_behind_it() -> None:
    rented = [{"affinityName": "rented", "clusterNames": ["c"]}, {"affinityName": "far", "exclude": ["a", "b", "c"]}]
    main = {"affinityName": "main", "clusterNames": ["a", "b"], "overflowAffinities": rented}
    spec, notes = placed(clusterAffinities=[main, {"affinityName": "last", "clusterNames": ["d"]}])
    groups = spec["clusterGroups"]
    assert [(each["name"], each.get("when")) for each in groups] == [
        ("main", None),
        ("rented", "Overflow"),
        ("far", "Overflow"),
        ("last", None),
    ]
    assert groups[1]["clusters"] == ["c"]
    assert not notes


def test_groups_of_workloads_stay_together_or_apart() -> None:
    affinity = {"affinity": {"groupByLabelKey": "stack"}, "antiAffinity": {"groupByLabelKey": "copies-of"}}
    spec, notes = placed(workloadAffinity=affinity)
    assert spec["workloadAffinity"] == {"required": [{"matchLabelKeys": ["stack"]}]}
    assert spec["workloadAntiAffinity"] == {"required": [{"matchLabelKeys": ["copies-of"]}]}
    assert not notes


def test_a_limit_of_clusters_and_groups_of_clusters() -> None:
    spec, notes = placed(spreadConstraints=[{"spreadByField": "cluster", "maxGroups": 2, "minGroups": 2}])
    assert (spec["maxClusters"], spec["spreadConstraints"], notes) == (2, [{"minGroups": 2}], [])
    spec, notes = placed(spreadConstraints=[{"spreadByField": "region", "minGroups": 2}])
    assert "maxClusters" not in spec
    assert spec["spreadConstraints"] == [{"topologyKey": "topology.kubernetes.io/region", "minGroups": 2}]
    assert notes == []
    spec, notes = placed(spreadConstraints=[{"spreadByLabel": "rack", "maxGroups": 3}])
    assert (spec["spreadConstraints"], notes) == ([{"topologyKey": "rack", "minGroups": 1, "maxGroups": 3}], [])


def test_dependencies_travel_only_if_the_policy_says_so() -> None:
    (found,), _ = converted(policy())
    assert found["spec"]["disableFollowerScheduling"] is True
    (found,), _ = converted(policy(propagateDeps=True))
    assert "disableFollowerScheduling" not in found["spec"]


def test_failover_of_clusters_and_of_applications() -> None:
    failover = {
        "cluster": {"purgeMode": "Gracefully", "tolerationSeconds": 60},
        "application": {"decisionConditions": {"tolerationSeconds": 120}, "purgeMode": "Never"},
    }
    (found,), notes = converted(policy(failover=failover, placement={"replicaScheduling": STATIC}))
    application = {"tolerationSeconds": 120, "purgeMode": "Never"}
    assert found["spec"]["failover"] == {"mode": "Auto", "graceSeconds": 60, "application": application}
    assert found["spec"]["autoMigration"] == {"when": {"podUnschedulableFor": "120s"}}
    assert [note.field for note in notes] == ["spec.failover.cluster.purgeMode"]
    (found,), notes = converted(policy(failover=failover))
    assert "autoMigration" not in found["spec"]
    assert found["spec"]["failover"]["application"] == application


@pytest.mark.parametrize(
    ("theirs", "ours"), [("Directly", "Directly"), ("Immediately", "Directly"), ("Gracefully", "Graciously")]
)
def test_failover_of_applications_with_their_state_is_taken_over_as_it_is(theirs: str, ours: str) -> None:
    rule = {"aliasLabelName": "example.com/savepoint", "jsonPath": "{ .jobStatus.upgradeSavepointPath }"}
    application = {
        "decisionConditions": {"tolerationSeconds": 20},
        "purgeMode": theirs,
        "gracePeriodSeconds": 90,
        "statePreservation": {"rules": [rule]},
    }
    (found,), notes = converted(policy(failover={"application": application}))
    assert notes == []
    assert found["spec"]["failover"]["application"] == {
        "tolerationSeconds": 20,
        "purgeMode": ours,
        "gracePeriodSeconds": 90,
        "statePreservation": {"rules": [{**rule, "jsonPath": "{ .jobStatus.upgradeSavepointPath }"}]},
    }


def test_fields_without_counterpart_are_noted_unless_they_have_the_default() -> None:
    same = {"priority": 0, "preemption": "Never", "conflictResolution": "Abort", "schedulerName": "default-scheduler"}
    assert converted(policy(**same))[1] == []
    other = {
        "conflictResolution": "Overwrite",
        "activationPreference": "Lazy",
    }
    assert {note.field for note in converted(policy(**other))[1]} == {f"spec.{key}" for key in other}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"preemption": "Never"}),
        ({"priority": 7, "preemption": "Never"}, {"priority": 7, "preemption": "Never"}),
        ({"priority": -2, "preemption": "Always"}, {"priority": -2}),
        ({"priority": 0, "preemption": "Always"}, {}),
    ],
)
def test_priority_among_policies_is_kept(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    (found,), notes = converted(policy(**fields))
    assert {key: found["spec"].get(key) for key in ("priority", "preemption") if key in found["spec"]} == expected
    assert notes == []


def test_a_field_that_nobody_knows_is_noted() -> None:
    _, notes = converted(policy(placement={"clusterAffinity": {"clusterName": ["a"]}}, newField={"a": 1}))
    assert {note.field for note in notes} == {"spec.placement.clusterAffinity.clusterName", "spec.newField"}


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (policy(placement={"clusterAffinity": {"clusterNames": "east"}}), r"clusterNames: must be a list"),
        (policy(priority={}, placement=[]), r"^PropagationPolicy shop/web: spec\.placement: must be a mapping"),
        (policy(placement={"clusterAffinity": {"clusterNames": [1]}}), r"clusterNames\[0\]: must be a text"),
        (policy(placement={"spreadConstraints": [{"spreadByField": "rack"}]}), r"'rack' is none of cluster, region"),
        (
            policy(placement={"clusterAffinity": {"clusterNames": ["a"], "exclude": ["a"]}}),
            r"exclude: excludes every cluster",
        ),
        ({**policy(), "metadata": {}}, r"metadata\.name: is required"),
        (policy("OverridePolicy", overriders={"plaintext": [{"path": "spec", "operator": "add"}]}), "JSON pointer"),
        (policy("OverridePolicy", overriders={"imageOverrider": [{"component": "Name"}]}), "none of Registry, Repo"),
    ],
)
def test_an_unusable_field_is_named(manifest: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        convert([manifest])


def test_a_rule_has_its_clusters() -> None:
    target = {"clusterNames": ["a"], "labelSelector": {"matchLabels": {"env": "live"}}}
    rule = {"targetCluster": target, "overriders": {"argsOverrider": [{"containerName": "c", "operator": "add"}]}}
    (found,), notes = converted(policy("ClusterOverridePolicy", overrideRules=[rule]))
    assert found["spec"]["overrideRules"][0]["targetClusters"] == {
        "clusters": ["a"],
        "clusterSelector": {"env": "live"},
    }
    assert notes == []
    (old,), _ = converted(policy("ClusterOverridePolicy", **rule))
    assert old["spec"]["overrideRules"] == found["spec"]["overrideRules"]


def test_an_override_policy_without_selectors_is_noted() -> None:
    (found,), notes = converted(policy("OverridePolicy", resourceSelectors=[]))
    assert found["spec"] == {}
    assert [note.field for note in notes] == ["spec.resourceSelectors"]


@pytest.mark.parametrize(
    ("component", "operator", "value", "expected"),
    [
        ("Registry", "replace", "r.io", [("Registry", "overwrite", "r.io")]),
        ("Registry", "remove", "", [("Registry", "delete", None)]),
        ("Tag", "replace", "2", [("Tag", "overwrite", "2"), ("Digest", "delete", None)]),
        (
            "Tag",
            "replace",
            "@sha256:" + "a" * 64,
            [("Digest", "overwrite", "sha256:" + "a" * 64), ("Tag", "delete", None)],
        ),
        ("Tag", "remove", "", [("Tag", "delete", None), ("Digest", "delete", None)]),
        ("Repository", "add", "-slim", [("Repository", "addIfAbsent", "-slim")]),
    ],
)
def test_parts_of_images(
    component: str, operator: str, value: str, expected: list[tuple[str, str, str | None]]
) -> None:
    overrider = {"component": component, "operator": operator, "value": value, "predicate": {"path": "/spec/image"}}
    found, notes = overridden(imageOverrider=[overrider])
    (image,) = found["image"]
    operations = [(each["imageComponent"], each["operator"], each.get("value")) for each in image["operations"]]
    assert (image["imagePath"], operations) == ("/spec/image", expected)
    assert bool(notes) == (operator == "add")


def test_labels_are_set_whether_present_or_not() -> None:
    found, notes = overridden(labelsOverrider=[{"operator": "add", "value": {"a": "1"}}])
    assert found["labels"] == [
        {"operator": "delete", "value": {"a": "1"}},
        {"operator": "addIfAbsent", "value": {"a": "1"}},
    ]
    assert notes == []


def test_commands_patches_and_documents() -> None:
    found, notes = overridden(
        commandOverrider=[{"containerName": "c", "operator": "remove", "value": ["-v"]}],
        plaintext=[{"path": "/spec/x", "operator": "add", "value": 0}, {"path": "/spec/y", "operator": "remove"}],
        annotationsOverrider=[{"operator": "replace", "value": {"a": "1"}}],
        fieldOverrider=[
            {"fieldPath": "/data/a", "yaml": [{"subPath": "/b", "operator": "add", "value": {"c": 1}}]},
            {"fieldPath": "/data/d", "json": [{"subPath": "/e/0", "operator": "remove"}]},
        ],
    )
    assert found == {
        "command": [{"containerName": "c", "operator": "delete", "value": ["-v"]}],
        "annotations": [{"operator": "overwrite", "value": {"a": "1"}}],
        "jsonpatch": [
            {"path": "/spec/x", "operator": "add", "value": 0},
            {"path": "/spec/y", "operator": "remove"},
        ],
        "fields": [
            {"fieldPath": "/data/a", "yaml": [{"subPath": "/b", "operator": "add", "value": {"c": 1}}]},
            {"fieldPath": "/data/d", "json": [{"subPath": "/e/0", "operator": "remove"}]},
        ],
    }
    assert notes == []


def test_metrics_that_clusters_do_not_share_are_noted() -> None:
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 3,
        "metrics": [{"type": "Pods", "pods": {}}, {"type": "External", "external": {}}],
    }
    manifest = {"apiVersion": "autoscaling.karmada.io/v1alpha1", "kind": "FederatedHPA", "metadata": {"name": "w"}}
    (found,), notes = converted({**manifest, "spec": spec})
    assert found["spec"] == spec
    assert [note.field for note in notes] == ["spec.metrics[1]"]


def test_a_quota_keeps_its_limits_over_all_clusters() -> None:
    spec = {
        "overall": {"cpu": "4", "limits.cpu": "8"},
        "staticAssignments": [{"clusterName": "a", "hard": {"cpu": "1"}}],
    }
    (found,), notes = converted(policy("FederatedResourceQuota", resourceSelectors=None, **spec))
    assert found["apiVersion"] == "core.kubeadmiral.io/v1alpha1"
    assert found["spec"] == {"overall": {"cpu": "4"}}
    assert [note.field for note in notes] == ["spec.overall.limits.cpu", "spec.staticAssignments"]


@pytest.mark.parametrize(
    "assignments",
    [
        "desiredObj.spec.a = n; desiredObj.spec.b = n",
        "desiredObj.spec.a = 3",
        "desiredObj.spec.a = desiredReplica; desiredObj.spec.b = 3",
    ],
)
def test_the_definition_of_a_kind_gives_plural_and_scope(assignments: str) -> None:
    names = {"kind": "Mouse", "plural": "mice"}
    crd = {"kind": "CustomResourceDefinition", "spec": {"group": "x.io", "names": names, "scope": "Cluster"}}
    script = f"function ReviseReplica(desiredObj, n) {assignments}; return desiredObj end"
    customization = {
        "apiVersion": "config.karmada.io/v1alpha1",
        "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "mice"},
        "spec": {
            "target": {"apiVersion": "x.io/v1", "kind": "Mouse"},
            "customizations": {"replicaRevision": {"luaScript": script}},
        },
    }
    (_, found), notes = converted(crd, customization)
    assert found["metadata"]["name"] == "mice.x.io"
    assert found["spec"]["sourceType"]["scope"] == "Cluster"
    assert "pathDefinition" not in found["spec"]
    assert [note.field for note in notes] == ["spec.customizations.replicaRevision.luaScript"]
    customization["spec"]["target"] = {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert converted(customization)[0] == []


def test_kinds_of_karmadas_controllers_are_left_out_with_a_note() -> None:
    work = {"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": {"name": "w", "namespace": "n"}}
    objects, notes = converted(work)
    assert objects == []
    assert notes == [Note("Work n/w", "kind", "left out: members are written directly; apply the object itself")]


def test_an_object_that_karmada_had_loses_what_karmada_added() -> None:
    metadata = {
        "name": "a",
        "uid": "1",
        "labels": {"app": "a", "propagationpolicy.karmada.io/permanent-id": "x"},
        "annotations": {"propagationpolicy.karmada.io/name": "web", "own": "1"},
        "finalizers": ["karmada.io/binding-controller"],
    }
    (found,), notes = converted({"kind": "ConfigMap", "metadata": metadata, "status": {}})
    assert found == {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"app": "a"}, "annotations": {"own": "1"}},
    }
    assert notes == []
    other = {"kind": "ConfigMap", "metadata": {"name": "a", "uid": "1"}, "status": {}}
    assert converted(other)[0] == [other]


def test_finalizers_of_other_controllers_are_noted() -> None:
    kept = policy()
    kept["metadata"]["finalizers"] = ["karmada.io/x", "example.com/y"]
    (found,), notes = converted(kept)
    assert "finalizers" not in found["metadata"]
    assert [(note.field, note.message) for note in notes] == [
        ("metadata.finalizers", "example.com/y: left out, its controller may not run here")
    ]


def test_what_users_tell_karmada_on_their_objects_is_converted_or_noted() -> None:
    labels = {
        "resourcetemplate.karmada.io/retain-replicas": "true",
        "resourcetemplate.karmada.io/deletion-protected": "Always",
    }
    deployment = {"kind": "Deployment", "metadata": {"name": "a", "namespace": "n", "labels": labels}}
    skipped = {"namespace.karmada.io/skip-auto-propagation": "true"}
    namespace = {"kind": "Namespace", "metadata": {"name": "n", "labels": skipped}}
    objects, notes = converted(deployment, namespace)
    assert [each["metadata"]["annotations"] for each in objects] == [
        {"kubeadmiral.io/retain-replicas": "true"},
        {"kubeadmiral.io/no-auto-propagation": "true"},
    ]
    assert [(note.source, note.field) for note in notes] == [
        ("Deployment n/a", "metadata.labels.resourcetemplate.karmada.io/deletion-protected")
    ]
    protected = policy()
    protected["metadata"]["labels"] = {"resourcetemplate.karmada.io/deletion-protected": "Always"}
    assert [note.field for note in converted(protected)[1]] == [notes[0].field]


def test_a_state_is_passed_on_from_a_lost_cluster() -> None:
    kept = {"statePreservation": {"rules": [{"aliasLabelName": "a", "jsonPath": "{.b}"}]}}
    cluster = {"tolerationSeconds": 60, **kept}
    [found], notes = converted(policy(failover={"cluster": cluster}, placement={"replicaScheduling": STATIC}))
    assert found["spec"]["failover"] == {"mode": "Auto", "graceSeconds": 60, **kept}
    assert [note.field for note in notes if "statePreservation" in note.field] == []


@pytest.mark.parametrize(
    ("kind", "suspension", "expected"),
    [
        ("PropagationPolicy", {"dispatching": True}, ("DeliverySuspension", None)),
        ("ClusterPropagationPolicy", {"dispatching": True}, ("ClusterDeliverySuspension", None)),
        (
            "PropagationPolicy",
            {"dispatchingOnClusters": {"clusterNames": ["east"]}},
            ("DeliverySuspension", ["east"]),
        ),
    ],
)
def test_suspended_dispatching_is_a_suspension_of_the_policys_objects(
    kind: str, suspension: dict[str, Any], expected: tuple[str, Any]
) -> None:
    (held, found), notes = converted(policy(kind, suspension=suspension))
    assert notes == []
    assert (held["kind"], held["spec"].get("clusters")) == expected
    assert held["metadata"] == found["metadata"]
    assert held["spec"]["objects"] == SELECTORS
    assert held["spec"]["owner"].startswith(f"{kind} ")


def test_what_is_not_suspended_makes_no_suspension_and_suspended_scheduling_stays_in_the_policy() -> None:
    (found,), notes = converted(policy(suspension={"dispatching": False, "scheduling": True}))
    assert notes == []
    reason = "suspended in Karmada by spec.suspension of this policy"
    assert found["spec"]["suspension"] == {"scheduling": True, "reason": reason}


def test_a_cluster_taint_policy_keeps_its_conditions_and_taints() -> None:
    condition = {"conditionType": "Ready", "operator": "NotIn", "statusValues": ["True"]}
    taint = {"key": "sick", "effect": "NoExecute"}
    spec = {
        "targetClusters": {"clusterNames": ["east"], "labelSelector": {"matchLabels": {"tier": "prod"}}},
        "addOnConditions": [condition],
        "removeOnConditions": [{**condition, "operator": "In"}],
        "taints": [taint],
    }
    (found,), notes = converted({**policy("ClusterTaintPolicy"), "spec": spec})
    assert notes == []
    assert found["spec"] == {
        "clusters": ["east"],
        "clusterSelector": {"tier": "prod"},
        "when": [{"conditions": [{"type": "Ready", "operator": "NotIn", "values": ["True"]}]}],
        "clearWhen": [{"conditions": [{"type": "Ready", "operator": "In", "values": ["True"]}]}],
        "holdSeconds": 0,
        "clearSeconds": 0,
        "maxClusters": "100%",
        "taints": [taint],
    }
    (manual,), notes = converted({**policy("ClusterTaintPolicy"), "spec": {**spec, "removeOnConditions": []}})
    assert (manual["spec"]["removal"], notes) == ("Manual", [])
    (idle,), notes = converted({**policy("ClusterTaintPolicy"), "spec": {**spec, "addOnConditions": []}})
    assert (idle["spec"]["maxClusters"], notes) == (0, [])


def test_a_remedy_keeps_its_decisions_and_cuts_traffic() -> None:
    match = {"conditionType": "ServiceDomainNameResolutionReady", "operator": "Equal", "conditionStatus": "False"}
    spec = {
        "clusterAffinity": {"clusterNames": ["east"]},
        "decisionMatches": [{"clusterConditionMatch": match}],
        "actions": ["TrafficControl"],
    }
    remedy = {**policy("ClusterRemedy"), "apiVersion": "remedy.karmada.io/v1alpha1", "kind": "Remedy", "spec": spec}
    (found,), notes = converted(remedy)
    assert notes == []
    assert found["spec"]["when"] == [
        {"conditions": [{"type": match["conditionType"], "operator": "In", "values": ["False"]}]}
    ]
    assert (found["spec"]["clusters"], found["spec"]["actions"]) == (["east"], [{"type": "CutTraffic"}])
    (_,), notes = converted({**remedy, "spec": {**spec, "actions": ["Other"]}})
    assert [note.field for note in notes] == ["spec.actions[0]"]


DEPLOYMENT, ROLE = {"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "ClusterRole"}


@pytest.mark.parametrize(
    ("kind", "narrow"),
    [("ClusterPropagationPolicy", "PropagationPolicy"), ("ClusterOverridePolicy", "OverridePolicy")],
)
def test_a_cluster_wide_policy_that_selects_in_namespaces_is_not_widened(kind: str, narrow: str) -> None:
    inside = [{**DEPLOYMENT, "namespace": "shop"}, {**DEPLOYMENT, "namespace": "pay"}]
    objects, notes = converted(policy(kind, resourceSelectors=[ROLE, *inside]))
    found = [
        (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"], each["spec"]["resourceSelectors"])
        for each in objects
    ]
    assert found == [
        (kind, None, "web", [ROLE]),
        (narrow, "pay", "web", [DEPLOYMENT]),
        (narrow, "shop", "web", [DEPLOYMENT]),
    ]
    text = f"a cluster-wide policy selects in all namespaces here; it is a {narrow} in pay, shop"
    assert [note for note in notes if note.field == "spec.resourceSelectors"] == [
        Note(f"{kind} web", "spec.resourceSelectors", text)
    ]


def test_a_policy_that_would_replace_another_one_is_refused() -> None:
    wide = policy("ClusterOverridePolicy", resourceSelectors=[{**DEPLOYMENT, "namespace": "shop"}])
    with pytest.raises(ConfigurationError, match=r"OverridePolicy shop/web: metadata\.name: is the result of two"):
        converted(wide, policy("OverridePolicy"))


def test_a_policy_of_a_namespace_that_selects_in_another_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"resourceSelectors\[0\].namespace: .* write one in pay"):
        converted(policy(resourceSelectors=[{**DEPLOYMENT, "namespace": "pay"}]))
    (found,), _ = converted(policy(resourceSelectors=[{**DEPLOYMENT, "namespace": "shop"}]))
    assert found["spec"]["resourceSelectors"] == [DEPLOYMENT]
