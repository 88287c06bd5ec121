"""The scheduling unit built from policy, object and annotations."""

import json
from typing import Any

import pytest
from tests.unit.scheduling.test_attempt import Inputs, a_federated, a_policy

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition
from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS
from federation.planning.placement.failback import Offers
from federation.scheduling.annotationoverrides import ignored_annotations
from federation.scheduling.answers import Due
from federation.scheduling.framework.division import SUBSETS
from federation.scheduling.framework.migrations import AUTO_MIGRATION, CUSTOM_MIGRATION, AutoMigration
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.framework.types import SchedulingMode, Taint, Toleration
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.podrequest import node_needs_of, request_of
from federation.scheduling.policyspec import RescheduleWhen, compile_policy, compile_valid
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.unit import build_unit
from federation.scheduling.usermigration import MigrationError, applied_annotation, applied_form, from_annotation
from federation.scheduling.workloadspreads import SpreadIndex
from federation.scheduling.yields import Yield, yields_to_text

DEPLOYMENT_TYPE = FederatedType("d", DEPLOYMENTS, (), PathDefinition(replicas_spec=("spec", "replicas")))
PLAIN_TYPE = FederatedType("c", CONFIGMAPS, ())


def a_fed_object(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "100m", "nvidia.com/gpu": "1"}}}]
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"replicas": 4, "template": {"spec": {"containers": containers}}},
    }
    metadata = {"name": "web-d", "namespace": "default", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"template": template, **spec}}


def unit_of(policy: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, **more: Any) -> Any:
    snapshot = Snapshot(1, (a_cluster("east").built(), a_cluster("west").built()))
    federated = more.pop("federated", None) or a_fed_object(annotations)
    kind = more.pop("kind", DEPLOYMENT_TYPE)
    return build_unit(federated, kind, compile_policy({"spec": policy or {}}), snapshot, **more)


def test_identity_and_needs_come_from_the_template() -> None:
    unit = unit_of({"schedulingMode": "Divide"})
    assert unit.key == "default/web"
    assert unit.desired_replicas == 4
    assert unit.request == {"cpu": 100, "nvidia.com/gpu": 1}
    assert unit.labels == {"app": "web"}
    assert unit.mode is SchedulingMode.DIVIDE


def test_cpu_and_memory_can_be_left_out_as_in_kubeadmiral() -> None:
    federated = a_fed_object()
    requests = federated["spec"]["template"]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    requests |= {"resource.katalyst.kubewharf.io/reclaimed_millicpu": "2k", "memory": "1Gi"}
    request = unit_of(federated=federated, options=UnitOptions(counts_cpu_and_memory=False)).request
    assert request == {"nvidia.com/gpu": 1, "resource.katalyst.kubewharf.io/reclaimed_millicpu": 2000}


def test_types_without_replicas_are_copied() -> None:
    spec = {"placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]}
    unit = unit_of({"schedulingMode": "Divide"}, federated=a_fed_object(**spec), kind=PLAIN_TYPE)
    assert unit.mode is SchedulingMode.DUPLICATE
    assert unit.desired_replicas is None
    assert unit.current == {"east": None}


def test_the_current_placement_is_the_schedulers_own() -> None:
    def patches(*operations: dict[str, Any]) -> list[dict[str, Any]]:
        return list(operations)

    spec = {
        "placements": [
            {"controller": "other", "placement": [{"cluster": "elsewhere"}]},
            {"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}, {"cluster": "west"}]},
        ],
        "overrides": [
            {"controller": "other", "clusters": []},
            {
                "controller": names.GLOBAL_SCHEDULER,
                "clusters": [
                    {
                        "cluster": "east",
                        "patches": patches(
                            {"op": "add", "path": "/spec/replicas", "value": 9},
                            {"op": "replace", "path": "/spec/paused", "value": True},
                            {"path": "/spec/replicas", "value": 3},
                        ),
                    }
                ],
            },
        ],
    }
    assert unit_of(federated=a_fed_object(**spec)).current == {"east": 3, "west": None}


def test_every_annotation_overrides_its_field() -> None:
    affinity = {
        "clusterAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "clusterSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": {"matchExpressions": [{"key": "b", "operator": "Exists"}]}},
                {"weight": 0, "preference": {}},
            ],
        }
    }
    annotations = {
        names.SCHEDULING_MODE: "Divide",
        names.STICKY_CLUSTER: "true",
        names.CLUSTER_SELECTOR: '{"x": "y"}',
        names.AFFINITY: json.dumps(affinity),
        names.TOLERATIONS: '[{"key": "t", "operator": "Exists"}]',
        names.MAX_CLUSTERS: "2",
        names.PLACEMENTS: '[{"cluster": "east", "preferences": {"weight": 2, "minReplicas": 1}}]',
    }
    unit = unit_of({}, annotations)
    assert unit.mode is SchedulingMode.DIVIDE
    assert unit.sticky
    assert unit.affinity.cluster_selector == (("x", "y"),)
    assert unit.affinity.required == compile_cluster_terms([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}])
    assert [entry.weight for entry in unit.affinity.preferred] == [5]
    assert [unit.affinity.preferred[0].term.matches("east", labels) for labels in ({"b": ""}, {"a": ""})] == [
        True,
        False,
    ]
    assert unit.tolerations == (Toleration("t", "Exists"),)
    assert unit.max_clusters == 2
    assert (unit.preferences.cluster_names, unit.preferences.weights, unit.preferences.min_replicas) == (
        frozenset({"east"}),
        {"east": 2},
        {"east": 1},
    )
    assert ignored_annotations(annotations) == {}


def test_an_annotation_may_take_requirements_away() -> None:
    policy = {"clusterAffinity": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
    assert unit_of(policy).affinity.required is not None
    assert unit_of(policy, {names.AFFINITY: "{}"}).affinity.required is None


def test_capital_names_are_resolved_and_exact_ones_win() -> None:
    placement = [
        {"cluster": "East", "preferences": {"weight": 9}},
        {"cluster": "east", "preferences": {"weight": 1}},
        {"cluster": "WEST", "preferences": {"weight": 2}},
    ]
    unit = unit_of({"placement": placement})
    assert unit.preferences.cluster_names == {"east", "west"}
    assert unit.preferences.weights == {"east": 1, "west": 2}


def test_a_star_stands_for_the_clusters_without_an_entry() -> None:
    placement = [
        {"cluster": "east", "preferences": {"minReplicas": 1}},
        {"cluster": "*", "preferences": {"weight": 2, "maxReplicas": 3}},
    ]
    unit = unit_of({"placement": placement})
    assert unit.preferences.cluster_names == {"east", "west"}
    assert (unit.preferences.weights, unit.preferences.min_replicas, unit.preferences.max_replicas) == (
        {"west": 2},
        {"east": 1},
        {"west": 3},
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({}, True),
        ({"reschedulePolicy": {}}, True),
        ({"reschedulePolicy": {"replicaRescheduling": {}}}, True),
        ({"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}}}, False),
        ({"reschedulePolicy": {"replicaRescheduling": None}}, False),
    ],
)
def test_disruption_is_avoided_unless_the_policy_says_otherwise(policy: Any, expected: bool) -> None:
    assert unit_of(policy).avoid_disruption is expected


@pytest.mark.parametrize(
    ("applied", "kept", "limits"),
    [
        (None, None, {}),
        ({"east": 3}, None, {"east": 3}),
        (None, {"west": 1}, {"west": 1}),
        ({"east": 3, "west": 3}, {"east": 5, "west": 1}, {"east": 3, "west": 1}),
    ],
)
def test_the_smaller_limit_of_a_migration_and_of_giving_way_counts(
    applied: dict[str, int] | None, kept: dict[str, int] | None, limits: dict[str, int]
) -> None:
    annotations: dict[str, Any] = {}
    if applied is not None:
        annotations[names.APPLIED_MIGRATION_CONFIGURATION] = json.dumps({"limitedCapacity": applied})
    if kept is not None:
        annotations[names.GIVES_WAY] = yields_to_text({name: Yield(count, 1, "a/b") for name, count in kept.items()})
    assert CUSTOM_MIGRATION.of(unit_of({}, annotations)).limited_capacity == limits


def test_feedback_counts_only_with_auto_migration() -> None:
    counts = '"scheduledReplicas": {"east": 3, "west": 2}, "readyReplicas": {"west": 1}'
    info = {names.AUTO_MIGRATION_INFO: f'{{"estimatedCapacity": {{"east": 1}}, {counts}}}'}
    assert AUTO_MIGRATION.of(unit_of({}, info)) == AutoMigration()
    on = {"autoMigration": {"keepUnschedulableReplicas": True}}
    quarter = Offers({}, 1)
    known = AutoMigration(True, {"east": 1}, {"east": 3, "west": 2}, quarter, {"east": 3, "west": 1})
    assert AUTO_MIGRATION.of(unit_of(on, info)) == known
    assert AUTO_MIGRATION.of(unit_of(on, {names.AUTO_MIGRATION_INFO: "{nonsense"})) == AutoMigration(
        True, {}, {}, quarter
    )
    assert AUTO_MIGRATION.of(unit_of(on, {names.AUTO_MIGRATION_INFO: "[]"})) == AutoMigration(True, {}, {}, quarter)
    odd = {names.AUTO_MIGRATION_INFO: '{"estimatedCapacity": {"east": "1", "west": 2}, "scheduledReplicas": [1]}'}
    assert AUTO_MIGRATION.of(unit_of(on, odd)) == AutoMigration(True, {}, {}, quarter)
    for openings, told in (('{"west": 2}', {"west": 2}), ('["west"]', {"west": 1})):
        opened = AUTO_MIGRATION.of(unit_of(on, {names.AUTO_MIGRATION_INFO: f'{{"openings": {openings}}}'}))
        assert opened.openings == told
    assert AUTO_MIGRATION.of(unit_of(on)) == AutoMigration(True, {}, {}, quarter)


def test_recovered_capacity_is_offered_in_the_policys_batches() -> None:
    info = {names.AUTO_MIGRATION_INFO: '{"estimatedCapacity": {"east": 1}, "offeredReplicas": {"east": 2}}'}

    def offers(**failback: Any) -> Offers:
        return AUTO_MIGRATION.of(unit_of({"autoMigration": {"failback": failback}}, info)).offers

    assert offers(batchSize=7) == Offers({"east": 2}, 7)
    assert offers(batchSize="100%") == Offers({"east": 2}, unit_of({}).desired_replicas or 0)
    assert offers(batchSize=0, stableFor="1m") == Offers({"east": 2}, 0)
    with pytest.raises(ValueError, match="batchSize"):
        offers(batchSize="many")


def test_waves_that_are_too_large_are_an_error_of_the_policy() -> None:
    """The earlier version of the policy stays in force then, and other readers leave the policy out."""
    waves = [{"name": "first", "clusters": ["x" * 70_000]}]
    with pytest.raises(ValueError, match=r"spec\.rollout: the waves have 70,\d+ bytes"):
        compile_policy({"spec": {"rollout": {"waves": waves}}})
    assert [
        each.ref.name for each in compile_valid([{"spec": {"rollout": {"waves": waves}}}, {"metadata": {"name": "p"}}])
    ] == ["p"]


def test_a_policy_selects_the_rescheduling_triggers() -> None:
    assert compile_policy({"spec": {}}).rescheduling.when is None
    when = {"rescheduleWhen": {"clusterJoined": True, "policyContentChanged": False}}
    compiled = compile_policy({"spec": {"reschedulePolicy": when}})
    assert compiled.rescheduling.when == RescheduleWhen(policy_content_changed=False, cluster_joined=True)


def test_a_reference_names_the_kind_of_policy() -> None:
    assert str(compile_policy({"metadata": {"name": "a", "namespace": "b"}}).ref) == "PropagationPolicy b/a"
    assert str(compile_policy({"metadata": {"name": "a"}}).ref) == "ClusterPropagationPolicy a"


def test_the_content_hash_ignores_other_fields_and_the_order_of_keys() -> None:
    def hash_of(**spec: Any) -> str:
        return compile_policy({"spec": spec}).content_hash

    assert hash_of(maxClusters=1, schedulingMode="Divide") == hash_of(schedulingMode="Divide", maxClusters=1)
    assert hash_of(maxClusters=1) == hash_of(maxClusters=1, autoMigration={}, resourceSelectors=[])
    assert hash_of(maxClusters=1) != hash_of(maxClusters=2)


def test_for_how_long_pods_tolerate_a_taint_does_not_tell_their_needs_apart() -> None:
    def needs(**more: Any) -> Any:
        tolerations = [{"key": "a", "operator": "Exists", **more}]
        return node_needs_of({"kind": "Pod", "spec": {"tolerations": tolerations}})

    assert needs(tolerationSeconds=1) == needs(tolerationSeconds=2) == needs()


def test_a_pods_request_is_its_containers_its_largest_init_container_and_overhead() -> None:
    pod = {
        "containers": [
            {"resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Ki", "cpu": "1"}}},
            {"resources": {"requests": {"cpu": "150m"}}},
            {},
        ],
        "initContainers": [{"resources": {"requests": {"cpu": "200m", "memory": "4Ki"}}}, {}],
        "overhead": {"cpu": "10m"},
    }
    assert request_of({"kind": "Pod", "spec": pod}) == {"cpu": 260, "memory": 4096}
    assert request_of({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}})["cpu"] == 260
    assert request_of({"kind": "Job", "spec": {"template": "nonsense"}}) == {}
    assert request_of({"kind": "ConfigMap", "data": {}}) == {}


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        (Toleration(operator="Exists"), Taint("a", "b", "NoSchedule"), True),
        (Toleration("a", "Equal", "b"), Taint("a", "b", "NoExecute"), True),
        (Toleration("a", "", "b", "NoExecute", 30), Taint("a", "b", "NoExecute"), True),
        (Toleration("a", "Equal", "c"), Taint("a", "b", "NoExecute"), False),
        (Toleration("a", "Exists", "", "NoExecute"), Taint("a", "b", "NoSchedule"), False),
        (Toleration("x", "Exists"), Taint("a", "b", "NoSchedule"), False),
        (Toleration("a", "Nonsense", "b"), Taint("a", "b", "NoSchedule"), False),
    ],
)
def test_tolerations_have_kubernetes_meaning(toleration: Toleration, taint: Taint, expected: bool) -> None:
    assert toleration.tolerates(taint) is expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"replicasMigrations": [{"limitedCapacity": 1}]}, "cluster cannot be empty"),
        ({"replicasMigrations": [{"cluster": "a"}]}, "limitedCapacity cannot be empty"),
        ({"replicasMigrations": [{"cluster": "a", "limitedCapacity": "1"}]}, "limitedCapacity must be a number"),
        ({"replicasMigrations": [{"cluster": "a", "limitedCapacity": True}]}, "limitedCapacity must be a number"),
        ({"replicasMigrations": [{"cluster": "a", "limitedCapacity": 2**63}]}, "limitedCapacity must be a number"),
        ({"replicasMigrations": [{"cluster": 1, "limitedCapacity": 1}]}, "cluster must be a name"),
        ({"workloadMigrations": [{"cluster": "a"}]}, "validUntil cannot be empty"),
        # For a duplicate cluster, the problem of the second entry itself is reported first.
        (
            {"replicasMigrations": [{"cluster": "a", "limitedCapacity": 1}, {"cluster": "a"}]},
            "limitedCapacity cannot be empty",
        ),
        (
            {
                "replicasMigrations": [{"cluster": "a", "limitedCapacity": 1}],
                "workloadMigrations": [{"cluster": "a", "validUntil": "2026-01-01T00:00:00Z"}],
            },
            "multiple migration configurations cannot be configured for the same cluster",
        ),
    ],
)
def test_an_invalid_migration_request_names_the_problem(config: Any, message: str) -> None:
    with pytest.raises(MigrationError, match=message):
        applied_form(config, has_replicas=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{nonsense", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"replicasMigrations": {"a": 1}}', "replicasMigrations is not a list"),
        ('{"workloadMigrations": ["a"]}', "workloadMigrations is not a list of objects"),
        ('{"workloadMigrations": [{"cluster": "a", "validUntil": "soon"}]}', "validUntil 'soon' is not a time"),
        ('{"workloadMigrations": [{"cluster": "a", "validUntil": ""}]}', "validUntil '' is not a time"),
        ('{"workloadMigrations": [{"cluster": "a", "validUntil": 5}]}', "validUntil 5 is not a time"),
        ('{"workloadMigrations": [{"cluster": "a", "validUntil": "2026-01-01T00:00:00"}]}', "is not a time"),
        ('{"workloadMigrations": [{"cluster": "a", "validUntil": "0001-01-01T00:00:00+02:00"}]}', "is not a time"),
    ],
)
def test_a_migration_request_that_cannot_be_understood_is_not_put_in_force(text: str, message: str) -> None:
    with pytest.raises(MigrationError, match=message):
        applied_annotation(text, has_replicas=True)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.500Z", "2026-01-01T00:00:00.500000Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_the_time_of_a_migration_is_stored_in_utc(written: str, stored: str) -> None:
    request = {"workloadMigrations": [{"cluster": "b", "validUntil": written}]}
    text = applied_annotation(json.dumps(request), has_replicas=True)
    assert json.loads(text) == {"unavailableClusters": [{"cluster": "b", "validUntil": stored}]}
    assert from_annotation(text) is not None


@pytest.mark.parametrize("text", ["null", "{}", '{"replicasMigrations": null, "workloadMigrations": []}'])
def test_an_empty_migration_request_asks_for_nothing(text: str) -> None:
    assert applied_annotation(text, has_replicas=False) == "{}"


def test_the_applied_migration_is_read_back() -> None:
    text = applied_annotation(
        json.dumps(
            {
                "replicasMigrations": [{"cluster": "a", "limitedCapacity": 1}],
                "workloadMigrations": [{"cluster": "b", "validUntil": "2026-01-01T00:00:00Z"}],
            }
        ),
        has_replicas=True,
    )
    migration = from_annotation(text)
    assert migration is not None
    assert migration.limited_capacity == {"a": 1}
    assert migration.unavailable_until["b"].year == 2026
    for broken in (None, "", "{", "[]", '{"unavailableClusters": [{"cluster": "b", "validUntil": "soon"}]}'):
        assert from_annotation(broken) is None


def test_plugins_see_the_users_own_labels_and_annotations_and_the_whole_manifest() -> None:
    federated = a_fed_object({"kubeadmiral.io/internal": "x"})
    federated["spec"]["template"]["metadata"] |= {"labels": {"team": "red"}, "annotations": {"budget": "3"}}
    unit = unit_of(federated=federated)
    assert (unit.labels, unit.annotations) == ({"team": "red"}, {"budget": "3"})
    assert unit.template is federated["spec"]["template"]


@pytest.mark.parametrize(("mode", "caps"), [("Divide", {"half": 2}), ("Duplicate", None)])
def test_the_subsets_of_a_divided_unit_count_in_its_replicas(mode: str, caps: dict[str, int] | None) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    subsets = [{"name": "half", "maxReplicas": "50%"}, {"name": "rest"}]
    spread = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"targetRef": target, "subsets": subsets}}
    inputs = Inputs(a_policy(schedulingMode=mode))
    spreads = inputs.index(SpreadIndex)
    assert spreads is not None
    spreads.put(spread)
    _, due = inputs.assess(a_federated())
    assert isinstance(due, Due)
    assert (SUBSETS.of(due.unit) and SUBSETS.of(due.unit).caps()) == caps
