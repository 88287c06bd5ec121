"""The version of a FederatedTypeConfig beside the one that the host stores."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.features.types.versions import plan_version, version_standing
from federation.planning.typederivation import custom_config

SCALE = {"scale": {"specReplicasPath": ".spec.size"}}


def a_definition(*, old_served: bool = True, stored: str = "v1") -> dict[str, Any]:
    versions = [
        {"name": "v1beta1", "served": old_served, "storage": stored == "v1beta1", "subresources": SCALE},
        {"name": "v1", "served": True, "storage": stored == "v1"},
    ]
    kind = {"plural": "widgets", "kind": "Widget"}
    return {"spec": {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": versions}}


def a_config(version: str = "v1beta1", **metadata: Any) -> dict[str, Any]:
    config = custom_config(a_definition(), version)
    return {**config, "metadata": {**config["metadata"], "resourceVersion": "7", **metadata}}


@pytest.mark.parametrize("old_served", [True, False])
def test_a_derived_configuration_follows_the_stored_version_with_its_paths(old_served: bool) -> None:
    config, definition = a_config(), a_definition(old_served=old_served)
    assert config["spec"]["pathDefinition"] == {"replicasSpec": "spec.size"}
    patch = plan_version(config, definition)
    moved = apply_merge_patch(config, patch)
    assert patch["metadata"] == {"resourceVersion": "7"}
    assert moved["spec"] == custom_config(definition, "v1")["spec"]
    assert not moved["spec"].get("pathDefinition")
    assert plan_version(moved, definition) == {}
    back = apply_merge_patch(moved, plan_version(moved, a_definition(stored="v1beta1")))
    assert back["spec"] == config["spec"]


def test_what_an_administrator_changed_in_it_stays() -> None:
    config = a_config()
    config["spec"] |= {"pathDefinition": {"replicasSpec": "spec.count"}, "statusAggregation": {"enabled": False}}
    moved = apply_merge_patch(config, plan_version(config, a_definition()))
    assert moved["spec"] == {**config["spec"], "sourceType": {**config["spec"]["sourceType"], "version": "v1"}}


def test_a_configuration_of_a_user_stays_and_says_what_to_change() -> None:
    config = a_config(labels={})
    assert names.DERIVED_TYPE not in config["metadata"]["labels"]
    assert plan_version(config, a_definition()) == {}
    remedy = "set spec.sourceType.version of FederatedTypeConfig widgets.example.com to v1, the version that it stores"
    found = version_standing(config, a_definition())
    assert found is not None
    assert (found.status, found.reason) == ("False", "NotStored")
    assert found.message.endswith(remedy)
    found = version_standing(config, a_definition(old_served=False))
    assert found is not None
    assert (found.status, found.reason) == ("False", "NotServed")
    assert found.message.startswith("the host does not serve example.com/v1beta1")
    assert found.message.endswith(remedy)


def test_the_stored_version_is_current_and_a_kind_without_definition_has_no_condition() -> None:
    assert version_standing(a_config("v1"), a_definition()) == ("True", "Stored", "")
    assert version_standing(a_config(), None) is None
    unserved = a_definition(old_served=False)
    unserved["spec"]["versions"][1]["served"] = False
    assert version_standing(a_config(), unserved) is None
    assert plan_version(a_config(), unserved) == {}
