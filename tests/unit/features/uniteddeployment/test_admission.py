"""Admission of UnitedDeployments in an API server: defaults on the way in, causes for what cannot work."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES, UNITED_DEPLOYMENTS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ApiError, Invalid
from federation.apimachinery.resources import Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.features.uniteddeployment.admission import UnitedDeploymentAdmission
from federation.features.workloadspread.incluster.configurations import definitions


def a_united(template: Any = None, **spec: Any) -> dict[str, Any]:
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    deployment = {"metadata": {"labels": {"app": "a"}}, "spec": {"template": pods if template is None else template}}
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "UnitedDeployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"deploymentTemplate": deployment}, **spec},
    }


class Server:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.info = registry.kinds.lookup(UNITED_DEPLOYMENTS.group, "v1alpha1", UNITED_DEPLOYMENTS.plural)
        self.options = WriteOptions(user=lambda: {"username": "alice"})

    async def create(self, united: dict[str, Any]) -> dict[str, Any]:
        created: dict[str, Any] = orjson.loads(await self.registry.create(self.info, "default", united, self.options))
        return created

    async def update(self, united: dict[str, Any]) -> dict[str, Any]:
        body, _ = await self.registry.update(self.info, "default", "web", united, self.options)
        updated: dict[str, Any] = orjson.loads(body)
        return updated


async def a_server(admission: UnitedDeploymentAdmission) -> Server:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.install_crds(definitions())
    registry.add_admission_plugin(admission)
    return Server(registry)


@pytest.fixture
async def server() -> Server:
    return await a_server(UnitedDeploymentAdmission())


def a_host(*policies: dict[str, Any]) -> UnitedDeploymentAdmission:
    """Return the admission of a host with one cluster and these PropagationPolicies."""
    listed = {
        FEDERATED_CLUSTERS: [{"metadata": {"name": "east", "labels": {"region": "eu"}}}],
        PROPAGATION_POLICIES: list(policies),
    }

    async def list_objects(resource: Resource, namespace: str) -> list[dict[str, Any]]:
        assert namespace in (("default",) if resource.namespaced else ("",))
        return listed.get(resource, [])

    return UnitedDeploymentAdmission(list_objects)


@pytest.mark.parametrize(
    ("labels", "selectors", "is_warned"),
    [
        ({}, None, True),
        ({}, [{"apiVersion": "apps/v1", "kind": "StatefulSet"}], True),
        ({}, [{"apiVersion": "apps/v1", "kind": "Deployment"}], False),
        ({names.PROPAGATION_POLICY_LABEL: "p"}, None, False),
        ({names.CLUSTER_PROPAGATION_POLICY_LABEL: "p"}, None, False),
    ],
)
async def test_a_host_warns_when_no_policy_places_the_workloads(
    labels: dict[str, str], selectors: Any, *, is_warned: bool
) -> None:
    host = await a_server(a_host({"metadata": {"name": "p"}, "spec": {"resourceSelectors": selectors}}))
    united = a_united(topology={"subsets": [{"name": "a"}]})
    united["metadata"]["labels"] = labels
    await host.create(united)
    assert [warning.startswith("no policy places") for warning in host.options.warnings] == [True] * is_warned


async def test_a_host_refuses_unknown_targets_and_changes_of_a_target() -> None:
    host = await a_server(a_host())
    registry = {"namespaces": ["default"], "selector": {"region": "eu"}}

    def targeting(cluster: str, **fields: Any) -> dict[str, Any]:
        subset = {"name": "a", "targetCluster": {"name": cluster}, **fields}
        return a_united(topology={"clusterRegistry": registry, "subsets": [subset]})

    with pytest.raises(Invalid, match="default/nowhere"):
        await host.create(targeting("nowhere"))
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    with pytest.raises(Invalid, match="not together"):
        await host.create(targeting("east", nodeSelector={"nodeSelectorTerms": [term]}, nodeSelectorTerm=term))
    created = await host.create(targeting("east", nodeSelector={"nodeSelectorTerms": [term]}))
    assert created["spec"]["topology"]["clusterRegistry"] == registry
    with pytest.raises(Invalid, match="the target cluster of a subset cannot change"):
        await host.update({**created, "spec": {**created["spec"], "topology": {"subsets": [{"name": "a"}]}}})


async def test_defaults_are_stored(server: Server) -> None:
    subsets = [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 3}]
    spec = (await server.create(a_united(topology={"subsets": subsets})))["spec"]
    assert spec["replicas"] == 5
    assert spec["revisionHistoryLimit"] == 10
    assert spec["updateStrategy"]["type"] == "Manual"


async def test_problems_are_causes_of_a_422(server: Server) -> None:
    with pytest.raises(Invalid) as raised:
        await server.create(a_united(topology={"subsets": [{"name": "a", "replicas": 2}]}, replicas=4))
    assert [cause["field"] for cause in raised.value.details["causes"]] == ["spec.topology.subsets"]


@pytest.mark.parametrize(
    "template",
    [
        "text",
        {"metadata": {"labels": {"app": "a"}}, "spec": "text"},
        {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": ["text"]}},
        {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a", "ports": "x"}]}},
        {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a"}]}},
        {"metadata": {"labels": {"app": "a"}}, "spec": {"affinity": {"nodeAffinity": "x"}, "containers": []}},
    ],
)
async def test_templates_that_are_no_pods_are_refused(server: Server, template: Any) -> None:
    with pytest.raises(ApiError) as raised:
        await server.create(a_united(template))
    assert raised.value.code == 422


async def test_nodes_of_a_subset_cannot_be_changed(server: Server) -> None:
    def term(value: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}

    created = await server.create(a_united(topology={"subsets": [{"name": "a", "nodeSelectorTerm": term("x")}]}))
    created["spec"]["topology"]["subsets"][0]["nodeSelectorTerm"] = term("y")
    with pytest.raises(Invalid) as raised:
        await server.update(created)
    fields = [cause["field"] for cause in raised.value.details["causes"]]
    assert fields == ["spec.topology.subsets[0].nodeSelectorTerm"]


async def test_labels_change_without_a_new_validation_of_the_spec(server: Server) -> None:
    created = await server.create(a_united())
    created["metadata"]["labels"] = {"team": "a"}
    assert (await server.update(created))["metadata"]["labels"] == {"team": "a"}


async def test_users_scale_through_the_subresource(server: Server) -> None:
    await server.create(a_united(topology={"subsets": [{"name": "a"}]}))
    scale, body = {"spec": {"replicas": 7}}, "application/merge-patch+json"
    await server.registry.patch(
        server.info, "default", "web", body, orjson.dumps(scale), server.options, subresource="scale"
    )
    stored = orjson.loads(await server.registry.get(server.info, "default", "web"))
    assert stored["spec"]["replicas"] == 7
    assert stored["kind"] == "UnitedDeployment"
