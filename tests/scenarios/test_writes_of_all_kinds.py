"""Every feature that writes into objects of users leaves the fields that only the stored version has.

The definitions of the kinds get a version that is stored and has a field more; users write in it, and the features know
the earlier one. Each line of the control plane also checks every write (`support/lines.py`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from tests.scenarios import (
    test_cron_autoscaling,
    test_federated_workload_spreads,
    test_host_autoscaling,
    test_kubefed,
    test_multicluster_services,
    test_projects,
    test_sharded_services,
    test_united_deployments_across_clusters,
)
from tests.support.generated import nightly_unless
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.kubefedkinds import FEDERATED_KINDS
from federation.api.resources import (
    CRON_AUTOSCALERS,
    FEDERATED_CLUSTERS,
    FEDERATED_TYPE_CONFIGS,
    PROJECTS,
    PROPAGATION_POLICIES,
    SERVICE_EXPORTS,
    SERVICE_IMPORTS,
    TOPOLOGY_SPREAD_PLANS,
    UNITED_DEPLOYMENTS,
    WORKLOAD_SPREADS,
)
from federation.apimachinery.resources import CRDS, DEPLOYMENTS, Object, Resource
from federation.cli.databases import marking
from federation.planning.typederivation import custom_config

FEDERATED_DEPLOYMENTS = test_kubefed.FEDERATED_DEPLOYMENTS
FEDERATED_ROLES = FEDERATED_KINDS["FederatedClusterRole"].resource
OWN, NEWER = "ofANewerVersion", "v9"
"""The field, and the version that has it and is stored."""


async def store_newer_versions(world: World, *resources: Resource) -> None:
    """Give the definitions a version that is stored, and has a field more."""
    for resource in resources:
        definition = await world.user.get(CRDS, resource.group_resource)
        versions = definition["spec"]["versions"]
        newest = next(each for each in versions if each["name"] == resource.version)
        described = newest["schema"]["openAPIV3Schema"]
        spec = described["properties"].get("spec", {"type": "object"})
        wider = {**spec, "properties": {**spec.get("properties", {}), OWN: {"type": "string"}}}
        schema = {**described, "properties": {**described["properties"], "spec": wider}}
        newer = {**newest, "name": NEWER, "storage": True, "schema": {"openAPIV3Schema": schema}}
        versions = [*({**each, "storage": False} for each in versions), newer]
        await world.merge(CRDS, resource.group_resource, {"spec": {"versions": versions}}, namespace="")


def in_newer(resource: Resource) -> Resource:
    return resource._replace(version=NEWER)


async def add_fields(world: World, *resources: Resource) -> dict[tuple[Resource, str, str], str]:
    """Write the field into all objects of the kinds as their user; return their revisions."""
    found = {}
    for resource in resources:
        for obj in (await world.user.list(in_newer(resource))).items:
            name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
            written = await world.merge(in_newer(resource), name, {"spec": {OWN: "kept"}}, namespace=namespace)
            found[resource, namespace, name] = written["metadata"]["resourceVersion"]
    return found


async def _kubefed(world: World) -> None:
    await test_kubefed.apply(world, *test_kubefed.manifests())
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    role = {
        "apiVersion": FEDERATED_ROLES.api_version,
        "kind": FEDERATED_ROLES.kind,
        "metadata": {"name": "readers"},
        "spec": {"template": {"rules": rules}, "placement": {"clusterSelector": {}}},
    }
    await test_kubefed.apply(world, role)


async def _services(world: World) -> None:
    await test_multicluster_services.export(world)


async def _united(world: World) -> None:
    subsets = [test_united_deployments_across_clusters.a_subset(each, each) for each in ("east", "north")]
    await test_united_deployments_across_clusters.start(
        world, test_united_deployments_across_clusters.a_united(*subsets, replicas=4)
    )


async def _united_scaled(world: World) -> None:
    """A CronFederatedHPA and a HorizontalPodAutoscaler write its scale."""
    await _united(world)
    rule = {"name": "soon", "schedule": "* * * * *", "targetReplicas": 6}
    cron = test_cron_autoscaling.a_cron(rule, name="sample")
    target = {"apiVersion": UNITED_DEPLOYMENTS.api_version, "kind": "UnitedDeployment", "name": "sample"}
    await world.create(CRON_AUTOSCALERS, {**cron, "spec": {**cron["spec"], "scaleTargetRef": target}})
    scaler = test_host_autoscaling.an_autoscaler(scaleTargetRef=target, minReplicas=8)
    await world.create(test_host_autoscaling.SCALERS, scaler)


async def _spread(world: World) -> None:
    spread = test_federated_workload_spreads.a_spread(
        test_federated_workload_spreads.a_subset("east", 1), test_federated_workload_spreads.a_subset("north")
    )
    await test_federated_workload_spreads.begin(world, spread, 3, serving=("east", "north"))


async def _plan(world: World) -> None:
    for manifest in test_sharded_services.manifests("plan.yaml"):
        await world.create(TOPOLOGY_SPREAD_PLANS, manifest)


async def _own_kinds(world: World) -> None:
    await world.create(PROJECTS, test_projects.a_project("east", "north"))
    await world.create(PROPAGATION_POLICIES, a_policy({"*": 1}))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))


ALL_KUBEFED = tuple(
    resource
    for resource in test_kubefed._RESOURCES.values()
    if resource.group in ("types.kubefed.io", "scheduling.kubefed.io")
)
CASES: dict[str, tuple[Callable[[World], Awaitable[None]], tuple[Resource, ...], set[str]]] = {
    "kubefed": (_kubefed, ALL_KUBEFED, {"FederatedDeployment", "FederatedConfigMap", "FederatedClusterRole"}),
    "services": (_services, (SERVICE_EXPORTS, SERVICE_IMPORTS), {"ServiceExport", "ServiceImport"}),
    "uniteddeployment": (_united, (UNITED_DEPLOYMENTS,), {"UnitedDeployment"}),
    "autoscaling": (_united_scaled, (UNITED_DEPLOYMENTS, CRON_AUTOSCALERS), {"UnitedDeployment", "CronFederatedHPA"}),
    "workloadspread": (_spread, (WORKLOAD_SPREADS,), {"WorkloadSpread"}),
    "topologyspreadplan": (_plan, (TOPOLOGY_SPREAD_PLANS,), {"TopologySpreadPlan"}),
    "own": (
        _own_kinds,
        (PROJECTS, PROPAGATION_POLICIES, FEDERATED_CLUSTERS),
        {"Project", "PropagationPolicy", "FederatedCluster"},
    ),
}
"""What a user creates, the kinds that have two versions, and those of them into which the feature writes."""


async def _restart(world: World) -> None:
    await world.pass_time(90)
    await world.restart()


async def _restore(world: World) -> None:
    """Restore the host from a backup of now, as `fedctl restore` does."""
    backup = world.copy()
    await world.pass_time(90)
    mark = marking(backup.now, world.clock.now())
    entries = [replace(entry, value=mark(entry.key, entry.value)) for entry in backup.stores[""].entries]
    await world.restore_host(backup.stores[""]._replace(entries=entries))


@pytest.mark.parametrize(
    ("case", "again"),
    nightly_unless([*product(CASES, [_restart]), ("own", _restore)], product(CASES, (_restart, _restore))),
)
async def test_no_feature_takes_a_field_of_the_stored_version(
    case: str, again: Callable[[World], Awaitable[None]]
) -> None:
    begin, resources, expected = CASES[case]
    async with a_world(labels=test_kubefed.LABELS) as world:
        await store_newer_versions(world, *resources)
        await begin(world)
        before = await add_fields(world, *resources)
        assert before
        await world.settle()
        # A new process writes again what it finds, and finalizers leave with a policy.
        await again(world)
        await world.settle()
        written = set()
        for (resource, namespace, name), revision in before.items():
            held = await world.user.get(in_newer(resource), name, namespace)
            assert held["spec"][OWN] == "kept", f"{resource.kind} {name}"
            if held["metadata"]["resourceVersion"] != revision:
                written.add(resource.kind)
        assert expected <= written
        if FEDERATED_DEPLOYMENTS in resources:  # the invariants know Deployments of one namespace
            await world.user.delete(FEDERATED_DEPLOYMENTS, "web", "shop")
            await world.until_gone(DEPLOYMENTS, "web", "shop")


WIDGETS = Resource("example.com", "v1beta1", "Widget", "widgets")


def _definition() -> Object:
    number = {"type": "integer"}
    described = {"spec": {"type": "object", "properties": {"size": number}}, "status": {"type": "object"}}
    described["status"]["properties"] = {"size": number}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    version = {"name": "v1beta1", "served": True, "storage": True, "subresources": {"status": {}, "scale": scale}}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": described}}
    kind = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": [version]}
    metadata = {"name": WIDGETS.group_resource}
    return {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "metadata": metadata, "spec": spec}


async def test_users_kinds_are_scaled_without_loss() -> None:
    """A configuration of the older version, a CronFederatedHPA and a HorizontalPodAutoscaler; only built-in kinds follow."""
    async with a_world(members=("east", "north")) as world:
        for member in world.members.values():
            await member.admin.create(CRDS, _definition())
        await world.create(CRDS, _definition())
        config = custom_config(_definition(), WIDGETS.version)
        await world.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": {"name": WIDGETS.group_resource}})
        await store_newer_versions(world, WIDGETS)
        for name in ("timed", "scaled", "left"):
            metadata = {"name": name, "namespace": "default"}
            widget = {"apiVersion": in_newer(WIDGETS).api_version, "kind": "Widget", "metadata": metadata}
            await world.create(in_newer(WIDGETS), {**widget, "spec": {"size": 1, OWN: "kept"}})
        selected = [{"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind}]
        await world.create(PROPAGATION_POLICIES, a_policy({"*": 1}, resourceSelectors=selected))
        target = {"apiVersion": WIDGETS.api_version, "kind": "Widget"}
        rule = {"name": "soon", "schedule": "* * * * *", "targetReplicas": 6}
        cron = test_cron_autoscaling.a_cron(rule)
        cron["spec"]["scaleTargetRef"] = {**target, "name": "timed"}
        await world.create(CRON_AUTOSCALERS, cron)
        scaler = test_host_autoscaling.an_autoscaler(scaleTargetRef={**target, "name": "scaled"}, minReplicas=4)
        await world.create(test_host_autoscaling.SCALERS, scaler)

        async def specs() -> dict[str, Any]:
            return {
                each["metadata"]["name"]: each["spec"]
                for each in (await world.user.list(in_newer(WIDGETS), "default")).items
            }

        wanted = {name: {"size": size, OWN: "kept"} for name, size in (("timed", 6), ("scaled", 4), ("left", 1))}
        await world.until_equal(specs, wanted)
        await world.user.delete(PROPAGATION_POLICIES, "divide", "default")
        await world.settle()
        assert await specs() == wanted
