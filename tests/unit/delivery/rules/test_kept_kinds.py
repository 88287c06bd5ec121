"""Objects of some kinds leave a member only after their source was deleted: a placement never deletes them."""

import pytest

from federation.apimachinery.resources import Resource
from federation.delivery.rules.plan import ClusterState, Decision, ObservedObject, Operation, decide
from federation.delivery.rules.status import ClusterStatus
from federation.planning.leftovers.strays import is_kept

KEPT = [
    Resource("", "v1", "Namespace", "namespaces", namespaced=False),
    Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False),
    Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True),
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False),
]
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)


def _unplaced(resource: Resource) -> Decision:
    observed = ObservedObject(exists=True)
    return decide(
        ClusterState("east"), is_selected=False, is_recorded=True, observed=observed, is_kept=is_kept(resource)
    )


@pytest.mark.parametrize("resource", KEPT, ids=lambda resource: resource.kind)
def test_an_object_that_others_depend_on_stays_when_it_is_not_placed_any_more(resource: Resource) -> None:
    assert _unplaced(resource) == Decision(None, ClusterStatus.KEPT)


def test_any_other_object_is_deleted_then() -> None:
    assert _unplaced(CONFIG_MAP).operation is Operation.DELETE


def test_an_object_is_kept_only_if_somebody_says_so() -> None:
    there = ObservedObject(exists=True)
    decision = decide(ClusterState("east"), is_selected=False, is_recorded=True, observed=there)
    assert decision.operation is Operation.DELETE
