from typing import Any

import pytest

from federation.api import federatedtype, names
from federation.api.federatedtype import from_config
from federation.apimachinery import dotpaths


def shipped(name: str) -> federatedtype.FederatedType:
    configs = {config["metadata"]["name"]: config for config in federatedtype.default_type_configs()}
    return from_config(configs[name])


def test_deployments_are_the_type_with_replicas() -> None:
    type_ = shipped("deployments.apps")
    assert type_.resource.api_version == "apps/v1"
    assert type_.controllers == ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))
    assert type_.paths.replicas_spec == ("spec", "replicas")
    assert type_.replicas({"spec": {"replicas": 3}}) == 3
    assert type_.replicas({"spec": {}}) is None
    assert (type_.collect, type_.aggregate, type_.auto_migration) == (True, True, True)
    assert type_.federated_resource.kind == "FederatedObject"
    assert type_.resource.group_kind == ("apps", "Deployment")


def test_namespaces_are_propagated_by_their_own_controller_and_not_aggregated() -> None:
    type_ = shipped("namespaces")
    assert type_.controllers == ((names.NSAUTOPROP_CONTROLLER,), (names.OVERRIDE_CONTROLLER,))
    assert (type_.collect, type_.aggregate) == (False, False)
    assert type_.federated_resource.kind == "ClusterFederatedObject"
    assert type_.replicas({"spec": {"replicas": 3}}) is None


def test_the_shipped_set_is_complete_and_unique() -> None:
    configs = federatedtype.default_type_configs()
    types = [from_config(config) for config in configs]
    assert len({type_.name for type_ in types}) == len(types) == 37
    assert len({type_.resource.group_kind for type_ in types}) == 37
    assert all(type_.name == type_.resource.group_resource for type_ in types)
    assert shipped("endpointslices.discovery.k8s.io").controllers == ()
    assert shipped("services").status_fields[1] == ("spec", "clusterIP")
    assert shipped("horizontalpodautoscalers.autoscaling").scale_target_ref_path == ("spec", "scaleTargetRef")


def test_aggregation_is_on_unless_a_config_says_otherwise() -> None:
    config: dict[str, Any] = {
        "metadata": {"name": "pods"},
        "spec": {"sourceType": {"version": "v1", "kind": "Pod", "pluralName": "pods", "scope": "Namespaced"}},
    }
    assert from_config(config).aggregate
    assert not from_config(config).collect
    config["spec"]["statusAggregation"] = {"enabled": False}
    assert not from_config(config).aggregate


def test_a_config_without_its_kind_says_which_field_is_missing() -> None:
    with pytest.raises(ValueError, match=r"spec\.sourceType\.kind: Required value"):
        from_config({"metadata": {"name": "x"}, "spec": {"sourceType": {"version": "v1"}}})


def test_dot_paths() -> None:
    assert dotpaths.split(".spec.replicas") == ("spec", "replicas")
    assert dotpaths.get({"spec": {"replicas": 0}}, ("spec", "replicas")) == 0
    assert dotpaths.get({"spec": []}, ("spec", "replicas")) is None


@pytest.mark.parametrize(
    ("spec", "stages"),
    [
        ({}, ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))),
        ({"controllers": None}, ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))),
        ({"controllers": []}, ()),
        ({"controllers": [[], [names.GLOBAL_SCHEDULER]]}, ((names.GLOBAL_SCHEDULER,),)),
    ],
)
def test_a_type_without_controllers_is_scheduled_and_overridden(spec: dict[str, object], stages: object) -> None:
    source = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}
    config = {"metadata": {"name": "widgets.example.com"}, "spec": {"sourceType": source, **spec}}
    assert from_config(config).controllers == stages
