"""How many bytes policies may put into one object, at the limits."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.planning.overrides import budget, entries
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Cluster, Policy, compile_policy, compute_overrides

SMALL = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
KIB = 1024


def a_patch(size: int, path: str = "/data/x") -> dict[str, Any]:
    """Return a patch whose list has `size` JSON bytes."""
    patch = {"path": path, "value": ""}
    return patch | {"value": "x" * (size - len(orjson.dumps([patch])))}


def a_rule(size: int, *clusters: str, path: str = "/data/x") -> dict[str, Any]:
    rule: dict[str, Any] = {"overriders": {"jsonpatch": [a_patch(size, path)]}}
    return rule | ({"targetClusters": {"clusters": list(clusters)}} if clusters else {})


def a_policy(*rules: dict[str, Any], name: str = "p", **spec: Any) -> Policy:
    return compile_policy({"metadata": {"name": name, "namespace": "d"}, "spec": {"overrideRules": rules, **spec}})


def clusters(count: int) -> list[Cluster]:
    return [Cluster(f"m{index:04}", {}) for index in range(count)]


def a_federated(template: Any, stored: Any = None, **annotations: str) -> dict[str, Any]:
    placement = [{"cluster": name} for name in ("m1", "m2")]
    entry = [{"cluster": name, "patches": patches} for name, patches in (stored or {}).items()]
    overrides = [{"controller": names.OVERRIDE_CONTROLLER, "clusters": entry}]
    held = {names.PENDING_CONTROLLERS: "[]", **annotations}
    return {
        "metadata": {"name": "f", "resourceVersion": "1", "annotations": held},
        "spec": {
            "template": template,
            "placements": [{"controller": "s", "placement": placement}],
            "overrides": overrides if stored else [],
        },
    }


def plan(federated: dict[str, Any], *policies: Policy) -> entries.OverridePlan:
    return entries.plan_override_patch(federated, (), policies, lambda name: {"metadata": {"name": name}})


@pytest.mark.parametrize(
    ("count", "size", "fits"),
    [
        (1, 64 * KIB + 4 * KIB - len("d/p"), True),
        (1, 64 * KIB + 4 * KIB - len("d/p") + 1, False),
        (2, 35 * KIB, True),
        (2, 37 * KIB, False),
        (1000, 4 * KIB, True),
        (1000, 5 * KIB, False),
    ],
)
def test_small_objects_have_64_kib_and_four_more_for_each_cluster(count: int, size: int, *, fits: bool) -> None:
    failures: dict[str, OverrideError] = {}
    found = compute_overrides(SMALL, [a_policy(a_rule(size))], clusters(count), failures)
    assert (len(found), len(failures)) == ((count, 0) if fits else (0, count))


def test_overrides_that_repeat_an_object_in_every_cluster_fit() -> None:
    large = {**DEPLOYMENT, "metadata": {"name": "a", "annotations": {"configuration": "x" * 100 * KIB}}}
    label = {"annotations": [{"operator": "addIfAbsent", "value": {"region": "eu"}}]}
    found = compute_overrides(large, [a_policy({"overriders": label})], clusters(20))
    assert len(found) == 20


def test_the_error_names_the_largest_policy_with_size_and_limit() -> None:
    policies = [a_policy(a_rule(60 * KIB), name="large"), a_policy(a_rule(12 * KIB), name="small")]
    with pytest.raises(OverrideError) as raised:
        compute_overrides(SMALL, policies, clusters(1))
    assert str(raised.value) == (
        'OverridePolicy "d/large": spec.overrideRules: all overrides of this object have 73,742 bytes or more, 61,447'
        " of them from this policy, and the limit is 69,632; shorten the patches, or change the objects themselves"
    )


def test_clusters_without_a_matching_rule_do_not_fail() -> None:
    failures: dict[str, OverrideError] = {}
    assert compute_overrides(SMALL, [a_policy(a_rule(70 * KIB, "m0001"))], clusters(3), failures) == {}
    assert failures.keys() == {"m0001"}


def test_an_object_beyond_the_limit_keeps_its_last_overrides() -> None:
    stored = {"m1": [{"path": "/data/y", "value": "1"}]}
    planned = plan(a_federated(SMALL, stored), a_policy(a_rule(70 * KIB)))
    assert planned.patch is not None
    assert "spec" not in planned.patch
    failed = orjson.loads(planned.patch["metadata"]["annotations"][names.FAILED_OVERRIDES])
    assert failed.keys() == {"m1", "m2"}
    (failure,) = planned.failures
    assert failure.endswith("in clusters [m1,m2]")


def test_failures_in_one_cluster_after_the_other_do_not_add_up() -> None:
    stored = {"m1": [a_patch(60 * KIB)]}
    broken = a_rule(100, "m1", path="/missing/parent/x")
    planned = plan(a_federated(SMALL, stored), a_policy(broken, a_rule(60 * KIB, "m2")))
    assert planned.patch is not None
    assert "spec" not in planned.patch
    (failure,) = planned.failures
    assert failure.startswith(
        'OverridePolicy "d/p": spec.overrideRules: all overrides of this object, with the earlier'
    )
    small = plan(a_federated(SMALL, stored), a_policy(broken, a_rule(1 * KIB, "m2")))
    assert small.patch is not None
    assert len(small.patch["spec"]["overrides"][0]["clusters"]) == 2


@pytest.mark.parametrize(
    ("size", "is_held"), [(101, True), (100, False), (50, False)], ids=["larger", "as large", "smaller"]
)
def test_overrides_do_not_grow_in_a_full_namespace(size: int, *, is_held: bool) -> None:
    stored = {"m1": [a_patch(100)], "m2": [a_patch(100)]}
    policy = a_policy(a_rule(size, "m1", path="/data/z"), a_rule(100, "m2"))
    planned = entries.plan_override_patch(
        a_federated(SMALL, stored), (), [policy], lambda name: {"metadata": {"name": name}}, is_full=True
    )
    assert planned.patch is not None
    assert ("spec" in planned.patch) is not is_held
    failed = orjson.loads(planned.patch["metadata"]["annotations"].get(names.FAILED_OVERRIDES, "{}"))
    assert failed.keys() == ({"m1"} if is_held else set())


def waves(size: int) -> dict[str, Any]:
    return {"waves": [{"name": "first", "clusters": ["x" * size]}]}


@pytest.mark.parametrize(("size", "is_refused"), [(1 * KIB, False), (65 * KIB, True)])
def test_waves_beyond_the_limit_are_an_error_and_leave_the_stored_ones(size: int, *, is_refused: bool) -> None:
    policy = a_policy(rollout=waves(size))
    planned = plan(a_federated(DEPLOYMENT, **{names.OVERRIDE_ROLLOUT: "stored"}), policy)
    assert planned.patch is not None
    annotations = planned.patch["metadata"]["annotations"]
    assert (annotations.get(names.OVERRIDE_ROLLOUT) == policy.rollout) is not is_refused
    assert bool(planned.failures) is is_refused
    if is_refused:
        assert names.OVERRIDE_ROLLOUT not in annotations
        assert planned.failures[0].startswith('OverridePolicy "d/p": spec.rollout: the waves have 66,')
    assert not plan(a_federated(SMALL), policy).failures


@pytest.mark.parametrize(
    ("rules", "index"),
    [
        ([], None),
        ([a_rule(64 * KIB - 2)], None),
        ([a_rule(64 * KIB - 2), {"overriders": {"labels": [{"value": {}}]}}], None),
        ([a_rule(64 * KIB + 1)], 0),
        ([a_rule(30 * KIB), a_rule(40 * KIB)], 1),
        ([a_rule(40 * KIB, "m1"), a_rule(30 * KIB)], 0),
        ([a_rule(20 * KIB, f"m{number}") for number in range(10)], None),
    ],
)
def test_json_patches_for_one_cluster_have_a_limit(rules: list[dict[str, Any]], index: int | None) -> None:
    field, reason = budget.patches_problem({"overrideRules": rules})
    assert field == ("" if index is None else f"spec.overrideRules[{index}].overriders.jsonpatch")
    assert bool(reason) is bool(field)
