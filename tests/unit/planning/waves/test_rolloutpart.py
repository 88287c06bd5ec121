"""What a rollout in waves brings of an object, and how a cluster gets an earlier version of it back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api.federatedtype import FederatedType, PathDefinition
from federation.apimachinery import dotpaths
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, Object, Resource
from federation.planning.overrides.patches import apply_patches
from federation.planning.waves.rolloutpart import POD_TEMPLATE, RolloutPart, has_waves, rollout_part

QUEUE = Resource("example.com", "v1", "Queue", "queues")
SPEC_REPLICAS, DEEP_REPLICAS = ("spec", "replicas"), ("spec", "worker", "replicas")


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("apps/v1", "Deployment", True),
        ("apps.kruise.io/v1alpha1", "CloneSet", True),
        ("apps.kruise.io/v1beta1", "WorkloadSpread", False),
        ("example.com/v1", "Queue", True),
        ("gateway.networking.k8s.io/v1", "HTTPRoute", True),
        ("v1", "ConfigMap", False),
        ("batch/v1", "Job", False),
        ("kubeflow.org/v1", "PyTorchJob", False),
        ("core.kubeadmiral.io/v1alpha1", "PropagationPolicy", False),
    ],
)
def test_waves_apply_to_workloads_and_to_custom_resources_that_stay(
    api_version: str, kind: str, expected: bool
) -> None:
    assert has_waves({"apiVersion": api_version, "kind": kind}) is expected


def test_the_part_of_a_type() -> None:
    paths = PathDefinition(replicas_spec=SPEC_REPLICAS)
    assert rollout_part(FederatedType("d", DEPLOYMENTS, (), paths)) is POD_TEMPLATE
    assert rollout_part(FederatedType("c", CONFIGMAPS, ())) is None
    part = rollout_part(FederatedType("q", QUEUE, (), paths))
    assert part is not None
    obj = {"apiVersion": "v", "metadata": {"name": "q"}, "spec": {"replicas": 2, "mode": "a"}, "status": {}, "x": 1}
    assert part.of(obj) == {"spec": {"mode": "a"}, "x": 1}


_values = st.recursive(
    st.one_of(st.none(), st.integers(0, 2), st.sampled_from(("", "a/b", "~"))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(("a", "b/c", "worker", "replicas")), inner, max_size=3),
    ),
    max_leaves=5,
)
_fields = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.dictionaries(st.sampled_from(("a", "b~c", "worker", "replicas")), _values, max_size=4),
        "data": _values,
    },
)


@given(_fields, _fields, st.sampled_from(((), SPEC_REPLICAS, DEEP_REPLICAS)))
def test_patches_return_the_earlier_part_and_leave_the_replicas(
    now: dict[str, Any], before: dict[str, Any], path: dotpaths.Path
) -> None:
    part = RolloutPart(is_pod_template=False, replicas=path)
    wanted: Object = {"apiVersion": "example.com/v1", "kind": "Queue", "metadata": {"name": "q"}, **now}
    earlier = part.of(before)
    returned = apply_patches(wanted, part.patches(wanted, earlier))
    assert part.of(returned) == earlier
    assert part.of(part.put(wanted, earlier)) == earlier
    assert returned["metadata"] == wanted["metadata"]
    if path and isinstance(dotpaths.get(wanted, path[:-1]), dict) and path[-1] in dotpaths.get(wanted, path[:-1]):
        parents = [dotpaths.get(before, path[:at]) for at in range(1, len(path))]
        if all(parent is None or isinstance(parent, dict) for parent in parents):
            assert dotpaths.get(returned, path) == dotpaths.get(wanted, path)
            assert dotpaths.get(part.put(wanted, earlier), path) == dotpaths.get(wanted, path)
