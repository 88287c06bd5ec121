"""Which autoscaler targets an object, also among malformed ones."""

from typing import Any

import pytest

from federation.planning.drift.scalers import scaler_of
from federation.planning.rendering.retention import is_scaled


def _scaler(called: Any = "a", /, **target: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", **target}
    return {"metadata": {"name": called}, "spec": {"scaleTargetRef": reference}}


def test_the_first_autoscaler_that_targets_the_object_is_named() -> None:
    scalers = [_scaler("b"), _scaler("a"), _scaler("0", name="other")]
    assert scaler_of(scalers, "apps", "Deployment", "web") == "a"
    assert scaler_of([_scaler(apiVersion="apps/v1beta1")], "apps", "Deployment", "web") == "a"


@pytest.mark.parametrize(
    "scaler",
    [
        _scaler(kind="StatefulSet"),
        _scaler(apiVersion="example.com/v1"),
        _scaler(apiVersion="v1"),
        _scaler(apiVersion=None),
        _scaler(name=["web"]),
        _scaler(3),
        {**_scaler(), "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": "web"}},
        {"metadata": {"name": "a"}},
        {"metadata": None, "spec": None},
        "odd",
        None,
    ],
)
def test_other_and_malformed_ones_own_nothing(scaler: Any) -> None:
    assert scaler_of([scaler], "apps", "Deployment", "web") == ""


@pytest.mark.parametrize("managed", [None, "odd", [None, 3, "scale"], [{"subresource": "status"}], [{}]])
def test_only_an_entry_of_the_subresource_tells_a_scale(managed: Any) -> None:
    assert not is_scaled({"metadata": {"managedFields": managed}})
    assert is_scaled({"metadata": {"managedFields": [None, {"subresource": "scale"}]}})
