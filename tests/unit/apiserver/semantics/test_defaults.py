"""Defaults of built-in kinds where Kubernetes has a rule that is easy to miss."""

from typing import Any

import pytest

from federation.apiserver.semantics.defaults import otherdefaults, poddefaults, workloaddefaults
from federation.apiserver.semantics.strategies.batch import JobStrategy
from federation.apiserver.semantics.strategies.core import NodeStrategy
from federation.apiserver.semantics.strategies.storage import PersistentVolumeStrategy
from federation.apiserver.semantics.strategies.workloads import DeploymentStrategy

Object = dict[str, Any]


def a_template(**spec: Any) -> Object:
    containers = [{"name": "main", "image": "example.com/web:1", "ports": [{"containerPort": 80}]}]
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers, **spec}}


def test_only_pods_in_their_nodes_network_get_host_ports() -> None:
    pod = a_template(hostNetwork=True)
    poddefaults.default_pod(pod)
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    template = a_template(hostNetwork=True)
    poddefaults.default_template(template)
    assert template["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("example.com/web", "Always"),
        ("example.com:5000/web", "Always"),
        ("web:latest", "Always"),
        ("example.com:5000/team/web:1.2", "IfNotPresent"),
        ("web@sha256:" + "0" * 64, "IfNotPresent"),
        ("No such!", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_images_without_a_fixed_tag_are_always_pulled(image: str, policy: str) -> None:
    spec: Object = {"containers": [{"name": "main", "image": image}]}
    poddefaults.default_pod_spec(spec)
    assert spec["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        ({"type": "RollingUpdate", "rollingUpdate": {}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"type": "OnDelete"}, {"type": "OnDelete"}),
    ],
)
def test_stateful_sets_get_a_partition_with_their_rolling_update(given: Object, expected: Object) -> None:
    obj: Object = {"spec": {"updateStrategy": given}}
    workloaddefaults.default_stateful_set(obj)
    assert obj["spec"]["updateStrategy"] == expected


def test_services_with_external_addresses_get_an_external_policy() -> None:
    plain: Object = {"spec": {}}
    external: Object = {"spec": {"externalIPs": ["192.0.2.1"]}}
    for service in (plain, external):
        otherdefaults.default_service(service)
    assert "externalTrafficPolicy" not in plain["spec"]
    assert external["spec"]["externalTrafficPolicy"] == "Cluster"


def test_jobs_with_a_limit_per_index_have_none_in_total() -> None:
    obj: Object = {"spec": {"backoffLimitPerIndex": 1, "template": a_template()}}
    workloaddefaults.default_job(obj)
    assert (obj["spec"]["backoffLimit"], obj["spec"]["manualSelector"]) == (2**31 - 1, False)


def test_jobs_without_labels_take_those_of_their_template() -> None:
    obj: Object = {"metadata": {"name": "job", "uid": "u"}, "spec": {"template": a_template()}}
    JobStrategy().prepare_create(obj)
    assert obj["metadata"]["labels"] == obj["spec"]["template"]["metadata"]["labels"]
    assert obj["metadata"]["labels"].items() >= {"app": "web", "job-name": "job"}.items()


def test_the_two_fields_of_a_claims_data_source_are_filled_from_each_other() -> None:
    source = {"kind": "VolumeSnapshot", "name": "snap", "apiGroup": "snapshot.storage.k8s.io"}
    for given, other in (("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")):
        claim: Object = {"spec": {given: source}}
        otherdefaults.default_claim(claim)
        assert claim["spec"][other] == source


def test_a_node_can_allocate_its_capacity_unless_it_says_less() -> None:
    node: Object = {"status": {"capacity": {"cpu": "4"}}}
    NodeStrategy().default(node)
    assert node["status"]["allocatable"] == {"cpu": "4"}


def test_an_empty_group_of_a_role_reference_is_the_rbac_group() -> None:
    binding: Object = {"roleRef": {"apiGroup": "", "kind": "Role", "name": "reader"}}
    otherdefaults.default_role_binding(binding)
    assert binding["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"


def fields_of(causes: list[dict[str, str]]) -> list[str]:
    return sorted(cause["field"] for cause in causes)


def test_an_absent_selector_matches_no_template() -> None:
    obj: Object = {"metadata": {"name": "web"}, "spec": {"template": a_template()}}
    strategy = DeploymentStrategy()
    strategy.default(obj)
    assert fields_of(strategy.validate(obj)) == ["spec.selector", "spec.template.metadata.labels"]


def test_resources_of_containers_have_qualified_names() -> None:
    obj: Object = {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": a_template()}}
    limits = {"cpu": "1", "hugepages-2Mi": "2Mi", "example.com/gpu": "1", "gpu": "1", "example.com/{{x}}": "1"}
    obj["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
    strategy = DeploymentStrategy()
    strategy.default(obj)
    at = "spec.template.spec.containers[0].resources.limits"
    assert set(fields_of(strategy.validate(obj))) == {f"{at}[gpu]", f"{at}[example.com/{{{{x}}}}]"}


def test_csi_volumes_name_their_driver_and_handle() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "csi": {"driver": ""}}
    assert fields_of(PersistentVolumeStrategy().validate({"spec": spec})) == [
        "spec.csi.driver",
        "spec.csi.volumeHandle",
    ]
