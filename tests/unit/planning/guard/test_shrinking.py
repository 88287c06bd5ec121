"""Overrides that lower replicas: only where the object is, and only if they do."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.planning.guard.ledger import Cause
from federation.planning.guard.shrinking import causes_of, shrunk_clusters

Patches = list[dict[str, Any]]


def _type(kind: str) -> FederatedType:
    return next(
        from_config(config) for config in default_type_configs() if config["spec"]["sourceType"]["kind"] == kind
    )


def _overrides(**patches: Patches) -> list[dict[str, Any]]:
    clusters = [{"cluster": cluster, "patches": found} for cluster, found in patches.items()]
    return [{"controller": names.OVERRIDE_CONTROLLER, "clusters": clusters}]


def _replicas(value: Any) -> Patches:
    return [{"op": "replace", "path": "/spec/replicas", "value": value}]


def _shrunk(before: dict[str, Patches], after: dict[str, Patches], *, present: tuple[str, ...] = ("east",)) -> Any:
    federated = {
        "metadata": {"name": "web-deployments.apps", "namespace": "default"},
        "spec": {"template": a_deployment("web", replicas=4), "overrides": _overrides(**before)},
        "status": {"clusters": [{"cluster": name, "status": "OK"} for name in present]},
    }
    return shrunk_clusters(federated, _type("Deployment"), {"spec": {"overrides": _overrides(**after)}})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"east": _replicas(0)}, {"east"}),
        ({}, {"east": _replicas(3)}, {"east"}),
        ({}, {"east": _replicas(4)}, set()),
        ({}, {"east": _replicas(9)}, set()),
        ({"east": _replicas(9)}, {}, {"east"}),
        ({"east": _replicas(9)}, {"east": _replicas(8)}, {"east"}),
        ({"east": _replicas(1)}, {}, set()),
        ({}, {"east": [{"op": "replace", "path": "/spec", "value": {"replicas": 1}}]}, {"east"}),
        ({}, {"east": [{"op": "replace", "path": "/spec/replicas/missing", "value": 1}]}, set()),
        ({}, {"east": [{"op": "replace", "path": "/spec/minReadySeconds", "value": 1}]}, set()),
        ({}, {"east": [*_replicas(0), {"op": "replace", "path": "/spec/missing/parent", "value": 1}]}, set()),
        ({}, {"east": [{"op": "replace", "path": "", "value": {}}]}, set()),
        ({}, {"west": _replicas(0)}, set()),
    ],
)
def test_fewer_replicas_count_where_the_object_is(
    before: dict[str, Patches], after: dict[str, Patches], expected: set[str]
) -> None:
    assert _shrunk(before, after) == expected


def test_an_object_that_is_nowhere_yet_loses_nothing() -> None:
    assert _shrunk({}, {"east": _replicas(0)}, present=()) == set()


def test_a_patch_without_overrides_and_a_kind_without_replicas_lose_nothing() -> None:
    federated = {"metadata": {}, "spec": {"template": a_deployment("web")}}
    assert not shrunk_clusters(federated, _type("Deployment"), {"metadata": {"annotations": {}}})
    patch = {"spec": {"overrides": _overrides(east=_replicas(0))}}
    assert not shrunk_clusters(federated, _type("ConfigMap"), patch)


def test_the_policies_that_apply_now_are_named_before_those_behind_the_stored_overrides() -> None:
    federated = {"metadata": {"annotations": {names.OVERRIDE_POLICIES: "all,shop/old"}}}
    assert causes_of(federated, ["all", "shop/new"]) == (
        Cause("ClusterOverridePolicy", "", "all"),
        Cause("OverridePolicy", "shop", "new"),
        Cause("OverridePolicy", "shop", "old"),
    )
    assert causes_of({"metadata": {}}, []) == ()
