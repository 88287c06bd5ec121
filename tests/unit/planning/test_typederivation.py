"""Which kinds get a derived FederatedTypeConfig, for whom, and what it says."""

from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.apimachinery.resources import GroupKind, Resource, group_of
from federation.planning.federatedobject.hosteffect import ACTING
from federation.planning.typederivation import NotDerivableError, can_be_derived, derive_built_in, derive_custom


def a_definition(group: str = "example.com", scope: str = "Namespaced", **version: Any) -> dict[str, Any]:
    status = {"readyReplicas": {"type": "integer"}, "availableReplicas": {"type": "string"}}
    schema = {"properties": {"status": {"properties": status}}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [served],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def custom(
    definition: dict[str, Any] | None,
    *,
    group: str = "example.com",
    is_cluster_wide: bool = True,
    is_placed: bool = False,
) -> dict[str, Any]:
    return derive_custom(definition, GroupKind(group, "Widget"), is_cluster_wide=is_cluster_wide, is_placed=is_placed)


def test_a_custom_kind_gets_the_default_pipeline_and_is_marked() -> None:
    config = custom(a_definition())
    assert config["metadata"] == {"name": "widgets.example.com", "labels": {names.DERIVED_TYPE: "true"}}
    type_ = from_config(config)
    assert type_.controllers == ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))
    assert (type_.resource.api_version, type_.resource.plural, type_.resource.namespaced) == (
        "example.com/v1",
        "widgets",
        True,
    )
    assert (type_.aggregate, type_.auto_migration, type_.paths.replicas_spec) == (True, False, ())


def test_the_paths_come_from_the_scale_subresource_and_the_schema() -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    paths = from_config(custom(a_definition(subresources={"scale": scale}))).paths
    assert paths.replicas_spec == ("spec", "size")
    assert paths.replicas_status == ("status", "size")
    assert paths.ready_replicas_status == ("status", "readyReplicas")
    assert paths.available_replicas_status == ()


@pytest.mark.parametrize(
    ("definition", "more", "said"),
    [
        (None, {}, "the host does not serve Widget: create its CustomResourceDefinition first"),
        ({**a_definition(), "status": {}}, {}, "the host does not serve Widget"),
        (a_definition(served=False), {}, "the host serves no version of Widget"),
        (a_definition("core.kubeadmiral.io"), {"group": "core.kubeadmiral.io"}, "belongs to the federation itself"),
        (None, {"group": "rbac.authorization.k8s.io"}, "only if an administrator creates a FederatedTypeConfig"),
        (None, {"group": ""}, "only if an administrator creates a FederatedTypeConfig"),
    ],
)  # fmt: skip
def test_a_kind_that_cannot_travel_gets_none(definition: Any, more: Any, said: str) -> None:
    with pytest.raises(NotDerivableError, match=said):
        custom(definition, **more)


def test_a_tenants_policy_needs_a_definition_that_administrators_have_placed() -> None:
    with pytest.raises(NotDerivableError, match=r"must place the CustomResourceDefinition widgets\.example\.com"):
        custom(a_definition(), is_cluster_wide=False)
    assert custom(a_definition(), is_cluster_wide=False, is_placed=True)["metadata"]["name"] == "widgets.example.com"
    with pytest.raises(NotDerivableError, match="only a ClusterPropagationPolicy selects it"):
        custom(a_definition(scope="Cluster"), is_cluster_wide=False, is_placed=True)


def test_built_in_kinds_are_a_fixed_list() -> None:
    config = derive_built_in(GroupKind("apps", "ReplicaSet"), is_cluster_wide=False)
    assert config is not None
    type_ = from_config(config)
    assert (type_.name, type_.paths.replicas_spec) == ("replicasets.apps", ("spec", "replicas"))
    assert type_.paths.available_replicas_status == ("status", "availableReplicas")
    with pytest.raises(NotDerivableError, match="only a ClusterPropagationPolicy"):
        derive_built_in(GroupKind("node.k8s.io", "RuntimeClass"), is_cluster_wide=False)
    assert derive_built_in(GroupKind("node.k8s.io", "RuntimeClass"), is_cluster_wide=True) is not None


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Node"),
        ("v1", "Event"),
        ("v1", "Secret"),
        ("coordination.k8s.io/v1", "Lease"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("certificates.k8s.io/v1", "CertificateSigningRequest"),
        ("core.kubeadmiral.io/v1alpha1", "FederatedCluster"),
    ],
)
def test_what_belongs_to_one_cluster_or_grants_rights_is_never_derived(api_version: str, kind: str) -> None:
    assert derive_built_in(GroupKind(group_of(api_version), kind), is_cluster_wide=True) is None


@pytest.mark.parametrize("resource", ACTING, ids=lambda resource: resource.kind)
def test_what_acts_on_an_api_server_is_derived_for_administrators_only(resource: Resource) -> None:
    derived = derive_built_in(resource.group_kind, is_cluster_wide=True)
    assert derived is not None
    assert derived["metadata"]["name"] == resource.group_resource
    with pytest.raises(NotDerivableError, match="only a ClusterPropagationPolicy selects it"):
        derive_built_in(resource.group_kind, is_cluster_wide=False)


def test_a_configuration_names_the_version_that_the_host_stores() -> None:
    scale = {"scale": {"specReplicasPath": ".spec.size"}}
    old = {"name": "v1beta1", "served": True, "storage": False, "subresources": scale}
    definition = a_definition()
    definition["spec"]["versions"].insert(0, old)
    type_ = from_config(custom(definition))
    assert (type_.resource.version, type_.paths.replicas_spec) == ("v1", ())
    definition["spec"]["versions"][1]["served"] = False
    type_ = from_config(custom(definition))
    assert (type_.resource.version, type_.paths.replicas_spec) == ("v1beta1", ("spec", "size"))


def test_a_plural_of_a_shipped_kind_in_another_group_gets_no_special_treatment() -> None:
    shipped = {config["spec"]["sourceType"]["pluralName"] for config in default_type_configs()}
    assert "namespaces" in shipped
    definition = a_definition()
    definition["spec"]["names"]["plural"] = "namespaces"
    assert from_config(custom(definition)).controllers == ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))


def test_a_warning_is_left_out_for_kinds_that_get_a_configuration() -> None:
    definitions = [a_definition()]
    assert can_be_derived(GroupKind("", "Pod"), (), is_cluster_wide=False)
    assert can_be_derived(GroupKind("example.com", "Widget"), definitions, is_cluster_wide=False)
    assert not can_be_derived(GroupKind("example.com", "Gadget"), definitions, is_cluster_wide=True)
    assert not can_be_derived(GroupKind("", "Node"), definitions, is_cluster_wide=True)


def test_united_deployments_stay_on_the_host() -> None:
    definition = a_definition("apps.kruise.io")
    with pytest.raises(NotDerivableError, match="the host runs UnitedDeployments"):
        derive_custom(definition, GroupKind("apps.kruise.io", "UnitedDeployment"), is_cluster_wide=True, is_placed=True)
