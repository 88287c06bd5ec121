"""Admission of WorkloadSpreads on the host: the rules of a member, targets of any divided kind, and warnings."""

from typing import Any

import pytest
from tests.conformance.test_spread_examples import MANIFESTS
from tests.support.memberspreads import a_spread, a_subset
from tests.support.simulatedmember import a_workload, an_object

from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS, KRUISE_GROUP, WORKLOAD_SPREADS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import BadRequest
from federation.apimachinery.resources import CRDS, DEPLOYMENTS, NAMESPACES, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.assembly import protect_federated_objects
from federation.client.local import LocalClient
from federation.features.types.shippedtypes import ensure_types
from federation.features.workloadspread.names import CLUSTER_NAME_TERM

_WITHOUT_VALUES = {"matchExpressions": [{"key": "pool", "operator": "In"}]}
V1ALPHA1 = Resource(KRUISE_GROUP, "v1alpha1", "WorkloadSpread", "workloadspreads")


class Host:
    """An API server of a host without a network. WorkloadSpreads are written by a user, other objects by the server."""

    def __init__(self, registry: Registry) -> None:
        self.client = LocalClient(registry, user_agent="kubectl")
        self._registry = registry
        self._info = registry.kinds.lookup(V1ALPHA1.group, V1ALPHA1.version, V1ALPHA1.plural)
        self._options = WriteOptions(user=lambda: {"username": "alice"})

    async def create(self, spread: Object) -> list[str]:
        """Create a WorkloadSpread and return the warnings."""
        namespace = spread["metadata"]["namespace"]
        await self._registry.create(self._info, namespace, spread, self._options)
        return self._options.warnings

    async def update(self, section: str = "spec", **fields: Any) -> None:
        """Replace fields in a section of the WorkloadSpread `web`."""
        stored = await self.client.get(V1ALPHA1, "web", "default")
        changed = {**stored, section: {**stored[section], **fields}}
        await self._registry.update(self._info, "default", "web", changed, self._options)


@pytest.fixture(scope="module")
def manifests() -> list[Object]:
    return crd_manifests()


@pytest.fixture
async def host(manifests: list[Object]) -> Host:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.install_crds(manifests)
    protect_federated_objects(registry, clock)
    found = Host(registry)
    await ensure_types(found.client)
    return found


def fields(error: pytest.ExceptionInfo[BadRequest]) -> dict[str, str]:
    """Return the messages of the causes by field."""
    causes = (error.value.details or {}).get("causes") or ()
    return {cause["field"]: cause["message"] for cause in causes}


def in_cluster(name: str, limit: int | str | None = None, **more: Any) -> Object:
    term = {"matchExpressions": [{"key": CLUSTER_NAME_TERM, "operator": "In", "values": [name]}]}
    return a_subset(name, limit, required=False, requiredNodeSelectorTerm=term, **more)


@pytest.mark.parametrize(
    ("spread", "field", "text"),
    [
        (a_spread(), "spec.subsets", "at least one subset"),
        (a_spread(a_subset("a", "50.2%"), a_subset("b")), "spec.subsets[0].maxReplicas", "integer percentage"),
        (a_spread(a_subset("a", 1), a_subset("b", "5%")), "spec.subsets[1].maxReplicas", "all must be percentages"),
        (a_spread(a_subset("a", "20%"), a_subset("b", "20%")), "spec.subsets[0].maxReplicas", "must be 100%"),
        (
            a_spread(a_subset("a"), scheduleStrategy={"type": "Fixed", "adaptive": {}}),
            "spec.scheduleStrategy.type",
            "must be Adaptive",
        ),
        (
            a_spread(a_subset("a", 1, tolerations=[{"key": "x", "operator": "Near"}]), a_subset("b")),
            "spec.subsets[0].tolerations[0].operator",
            "Near",
        ),
        (
            a_spread(a_subset("a", required=False, requiredNodeSelectorTerm=_WITHOUT_VALUES)),
            "spec.subsets[0].requiredNodeSelectorTerm.matchExpressions[0].values",
            "must be specified",
        ),
        (
            a_spread(a_subset("a"), targetFilter={"selector": {"matchLabels": {"a b": "c"}}}),
            "spec.targetFilter.selector.matchLabels",
            "a b",
        ),
        (a_spread(a_subset("a"), kind="Deployment", api_version="batch/v1"), "spec.targetRef", "not supported"),
        (a_spread(a_subset("a"), kind="DaemonSet"), "spec.targetRef", "kind DaemonSet"),
        (a_spread(a_subset("a"), kind="Game", api_version="example.com/v1"), "spec.targetRef", "kind Game"),
    ],
)
async def test_an_invalid_field_is_named(host: Host, spread: Object, field: str, text: str) -> None:
    with pytest.raises(BadRequest) as error:
        await host.create(spread)
    assert text in fields(error)[field]


async def test_a_patch_that_is_nested_too_deeply_is_refused_and_a_deep_one_is_not(host: Host) -> None:
    patch: Object = {}
    for _ in range(63):
        patch = {"a": patch}
    with pytest.raises(BadRequest) as error:
        await host.create(a_spread(a_subset("a"), a_subset("b", patch={"a": patch})))
    assert fields(error) == {"spec.subsets[1].patch": "Forbidden: must have at most 64 levels"}
    await host.create(a_spread(a_subset("a"), a_subset("b", patch=patch)))


async def test_one_workload_has_one_workload_spread_and_keeps_it(host: Host) -> None:
    await host.create(a_spread(a_subset("a", 1), a_subset("b")))
    with pytest.raises(BadRequest) as error:
        await host.create(a_spread(a_subset("a"), name="other"))
    assert "WorkloadSpread web has the same target" in fields(error)["spec.targetRef"]
    await host.create(a_spread(a_subset("a"), name="other", kind="CloneSet", api_version="apps.kruise.io/v1alpha1"))

    with pytest.raises(BadRequest, match="group, kind and name are immutable"):
        await host.update(targetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"})
    target = {"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web"}
    await host.update(targetRef=target)
    with pytest.raises(BadRequest, match="must be greater than or equal to 0"):
        await host.update(subsets=[a_subset("a", -1)])


async def test_an_object_that_became_invalid_can_still_be_labelled_and_deleted(host: Host) -> None:
    await host.create(a_spread(a_subset("a"), name="web"))
    workload = a_workload(DEPLOYMENTS)
    await host.client.create(DEPLOYMENTS, workload)
    invalid = [a_subset("a", patch={"spec": {"containers": [{"name": "extra"}]}})]
    with pytest.raises(BadRequest, match="image"):
        await host.update(subsets=invalid)
    await host.client.delete(DEPLOYMENTS, "web", "default")
    await host.update(subsets=invalid)
    await host.client.create(DEPLOYMENTS, workload)
    await host.update("metadata", labels={"team": "a"})
    await host.client.delete(WORKLOAD_SPREADS, "web", "default")


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("Job", "batch/v1"),
        ("StatefulSet", "apps/v1"),
        ("StatefulSet", "apps.kruise.io/v1beta1"),
        ("ReplicaSet", "apps/v1"),
        ("CronJob", "batch/v1"),
        ("ReplicationController", "v1"),
        ("Game", "example.com/v1"),
    ],
)
async def test_each_kind_whose_replicas_are_divided_may_be_a_target(host: Host, kind: str, api_version: str) -> None:
    await host.client.create(CRDS, a_definition())
    await host.create(a_spread(a_subset("a"), kind=kind, api_version=api_version))


def a_definition() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Game", "plural": "games"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return an_object(CRDS, "games.example.com", spec=spec)


async def test_subsets_without_clusters_and_fields_that_pods_do_not_have_are_warned_about(host: Host) -> None:
    cluster = {"apiEndpoint": "https://east", "secretRef": {"name": "east"}}
    await host.client.create(FEDERATED_CLUSTERS, an_object(FEDERATED_CLUSTERS, "east", spec=cluster))
    patch = {"spec": {"containers": [{"name": "web", "resources": {"limit": {"cpu": "1"}}}]}}
    spread = a_spread(in_cluster("east", 1), in_cluster("west", 1, patch=patch), a_subset("rest"))
    assert await host.create(spread) == [
        'unknown field "spec.subsets[1].patch.spec.containers[0].resources.limit"',
        "spec.subsets[1]: no cluster matches the expressions on clusters of subset west",
    ]


@pytest.mark.parametrize("manifest", MANIFESTS)
async def test_the_manifests_of_the_documents_are_accepted_as_they_are_written(host: Host, manifest: Object) -> None:
    namespace = manifest["metadata"].get("namespace", "default")
    spread = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    if namespace != "default":
        await host.client.create(NAMESPACES, an_object(NAMESPACES, namespace))
    await host.create(spread)
    stored = await host.client.get(V1ALPHA1, manifest["metadata"]["name"], namespace)
    assert stored["spec"] == manifest["spec"]
