"""The index of the objects of policies equals a count from scratch after any history of changes."""

import random
from collections import Counter
from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import Object
from federation.scheduling.policyusage import POLICIES, ObjectKey, PolicyKey, PolicyUsage

TYPES = {type_.resource.kind: type_ for type_ in map(from_config, default_type_configs())}
LABELS = {
    PROPAGATION_POLICIES: names.PROPAGATION_POLICY_LABEL,
    CLUSTER_PROPAGATION_POLICIES: names.CLUSTER_PROPAGATION_POLICY_LABEL,
    OVERRIDE_POLICIES: names.OVERRIDE_POLICY_LABEL,
    CLUSTER_OVERRIDE_POLICIES: names.CLUSTER_OVERRIDE_POLICY_LABEL,
}


def _type_of(federated: Object) -> FederatedType | None:
    return TYPES.get(federated["spec"]["template"]["kind"])


def _federated(key: ObjectKey, kind: str, **labels: str) -> Object:
    namespace, name = key
    resource = TYPES[kind].resource
    template = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}}
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}, "spec": {"template": template}}


def _policy(key: PolicyKey, *kinds: str) -> Object:
    selectors = [{"apiVersion": TYPES[kind].resource.api_version, "kind": kind} for kind in kinds]
    spec = {"schedulingMode": "Duplicate", "resourceSelectors": selectors, "overrideRules": []}
    return {"kind": key.resource.kind, "metadata": {"namespace": key.namespace, "name": key.name}, "spec": spec}


def test_a_status_counts_by_resource_in_a_fixed_order() -> None:
    usage = PolicyUsage(_type_of)
    key = PolicyKey(PROPAGATION_POLICIES, "default", "all")
    assert usage.status_of(key) == {"refCount": 0, "typedRefCount": []}
    usage.put_policy(key, _policy(key, "ConfigMap", "Deployment"))
    for name, kind in (("a", "Deployment"), ("b", "ConfigMap"), ("c", "Deployment"), ("d", "Service")):
        usage.match(("default", name), _federated(("default", name), kind))
    configmaps = {"group": "", "resource": "configmaps", "count": 1}
    deployments = {"group": "apps", "resource": "deployments", "count": 2}
    assert usage.status_of(key) == {"refCount": 3, "typedRefCount": [configmaps, deployments]}


def test_a_policy_that_cannot_be_compiled_keeps_its_previous_version() -> None:
    usage = PolicyUsage(_type_of)
    key = PolicyKey(PROPAGATION_POLICIES, "default", "all")
    usage.put_policy(key, _policy(key, "Deployment"))
    broken = _policy(key, "Service")
    broken["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchExpressions": [{"key": "a", "operator": "Odd"}]}
    usage.put_policy(key, broken)
    assert usage.match(("default", "a"), _federated(("default", "a"), "Deployment")) == {key}


def test_a_namespace_is_placed_by_no_policy() -> None:
    usage = PolicyUsage(_type_of)
    key = PolicyKey(CLUSTER_PROPAGATION_POLICIES, "", "all")
    usage.put_policy(key, _policy(key, "Namespace"))
    assert key not in usage.match(("", "one"), _federated(("", "one"), "Namespace"))


@pytest.mark.parametrize("seed", range(30))
def test_any_history_of_objects_gives_the_count_from_scratch(seed: int) -> None:
    random_ = random.Random(seed)
    usage = PolicyUsage(_type_of)
    policies = [PolicyKey(r, "default" if r.namespaced else "", name) for r in POLICIES for name in ("one", "two")]
    for key in policies:
        kinds = random_.sample(("Deployment", "ConfigMap", "Service"), random_.randint(0, 2))
        usage.put_policy(key, _policy(key, *kinds))
    objects: dict[ObjectKey, Object] = {}
    counts: dict[PolicyKey, dict[str, Any]] = {key: usage.status_of(key) for key in policies}
    for _ in range(100):
        object_key = ("default", f"o{random_.randrange(8)}")
        if random_.random() < 0.3:
            objects.pop(object_key, None)
        else:
            labels = {LABELS[key.resource]: key.name for key in random_.sample(policies, random_.randint(0, 2))}
            kind = random_.choice(("Deployment", "ConfigMap", "Service"))
            objects[object_key] = _federated(object_key, kind, **labels)
        changed = usage.match(object_key, objects.get(object_key))
        for key in policies:
            before, counts[key] = counts[key], usage.status_of(key)
            assert before == counts[key] or key in changed
    fresh = PolicyUsage(_type_of)
    fresh._propagation, fresh._overrides = usage._propagation, usage._overrides
    expected: Counter[PolicyKey] = Counter()
    for object_key, federated in objects.items():
        expected.update(fresh.match(object_key, federated))
    assert {key: usage.status_of(key) for key in policies} == {key: fresh.status_of(key) for key in policies}
    assert all(usage.status_of(key)["refCount"] == expected[key] for key in policies)
    for object_key in list(objects):
        usage.match(object_key, None)
    assert not any(usage.objects_of(key) for key in policies)


@pytest.mark.parametrize("resource", POLICIES, ids=lambda resource: resource.kind)
def test_a_policy_that_is_gone_selects_nothing(resource: Any) -> None:
    usage = PolicyUsage(_type_of)
    key = PolicyKey(resource, "default" if resource.namespaced else "", "all")
    policy = _policy(key, "Deployment")
    usage.put_policy(key, policy)
    one, two = (_federated(("default", name), "Deployment") for name in ("one", "two"))
    assert usage.match(("default", "one"), one) == {key}
    usage.drop_policy(key, policy)
    assert usage.match(("default", "two"), two) == set()
    assert usage.match(("default", "one"), one) == {key}, "it has lost the policy"
