"""Whether an update brings a change of a ClusterOverridePolicy."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.rendering.imposed import changes_imposed, is_imposed


def a_federated(policies: str, *patches: Object) -> Object:
    clusters = [{"cluster": "east", "patches": list(patches)}]
    return {
        "metadata": {"annotations": {names.OVERRIDE_POLICIES: policies} if policies else {}},
        "spec": {"overrides": [{"controller": names.OVERRIDE_CONTROLLER, "clusters": clusters}]},
    }


def a_workload(**spec: Any) -> Object:
    return {"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": spec}


REPLICAS = {"op": "replace", "path": "/spec/replicas", "value": 0}


@pytest.mark.parametrize(
    ("policies", "patch", "live", "expected"),
    [
        ("restrict", REPLICAS, a_workload(replicas=3), True),
        ("default/own,restrict", REPLICAS, a_workload(replicas=3), True),
        ("default/own", REPLICAS, a_workload(replicas=3), False),
        ("", REPLICAS, a_workload(replicas=3), False),
        ("restrict", REPLICAS, a_workload(replicas=0, image="other"), False),
        ("restrict", REPLICAS, a_workload(), True),
        ("restrict", {"op": "add", "path": "/spec/items/0", "value": 1}, a_workload(replicas=0, items=[2]), True),
        ("restrict", {"op": "add", "path": "/spec/items/-", "value": 1}, a_workload(replicas=0, items=[1]), False),
        ("restrict", {"op": "remove", "path": "/spec/host"}, a_workload(replicas=0, host="x"), True),
        ("restrict", {"op": "remove", "path": "/spec/host"}, a_workload(replicas=0), False),
        ("restrict", {"value": 1}, a_workload(replicas=0, items=[1]), False),
    ],
)
def test_an_update_brings_a_restriction(policies: str, patch: Object, live: Object, *, expected: bool) -> None:
    desired = a_workload(replicas=0, items=[1])
    assert is_imposed(a_federated(policies, patch), "east", desired, live) is expected
    assert not is_imposed(a_federated(policies, patch), "west", desired, live)


def test_a_plan_compares_the_overrides() -> None:
    before, after = a_federated("restrict"), a_federated("restrict", REPLICAS)
    assert changes_imposed(before, after, "east")
    assert not changes_imposed(after, after, "east")
    assert not changes_imposed(before, a_federated("default/own", REPLICAS), "east")
