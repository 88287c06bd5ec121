"""A Service that two clusters export is reached from a third one; a lost cluster's endpoints leave and return."""

from collections.abc import Iterable
from typing import Any

from tests.support.manifests import a_deployment
from tests.support.world import World, a_world
from tests.support.worldmember import Member

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import (
    FEDERATED_CLUSTERS,
    PROPAGATION_POLICIES,
    REMEDIES,
    SERVICE_EXPORTS,
    SERVICE_IMPORTS,
)
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, ENDPOINT_SLICES, SERVICES, Object
from federation.features.services.names import SOURCE_CLUSTER

LABEL = names.PROPAGATION_POLICY_LABEL
EVERYWHERE = ("east", "north", "west")


def a_duplicating_policy(name: str, clusters: Iterable[str]) -> Object:
    return {
        "apiVersion": PROPAGATION_POLICIES.api_version,
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingMode": "Duplicate", "placement": [{"cluster": cluster} for cluster in clusters]},
    }


def a_service(**spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "labels": {LABEL: "exporters"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}], **spec},
    }


def an_object(resource: Any, policy: str, **fields: Any) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web", "namespace": "default", "labels": {LABEL: policy}},
        **fields,
    }


async def export(world: World, *, importers: Iterable[str] = ("north",), **spec: Any) -> None:
    """Let east and west export the Service, and the importers import it."""
    for member in world.members.values():
        definitions = [d for d in crd_manifests() if d["spec"]["group"] == SERVICE_EXPORTS.group]
        await member.registry.install_crds(definitions)
    await world.until(lambda: all_serve_exports(world))
    for name, clusters in (("exporters", ("east", "west")), ("importers", importers)):
        await world.create(PROPAGATION_POLICIES, a_duplicating_policy(name, clusters))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=2, **{LABEL: "exporters"}))
    await world.create(SERVICES, a_service(**spec))
    await world.create(SERVICE_EXPORTS, an_object(SERVICE_EXPORTS, "exporters"))
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    await world.create(
        SERVICE_IMPORTS, an_object(SERVICE_IMPORTS, "importers", spec={"type": "ClusterSetIP", "ports": ports})
    )


async def all_serve_exports(world: World) -> bool:
    """Return whether the host knows that every member serves ServiceExports."""
    clusters = (await world.user.list(FEDERATED_CLUSTERS)).items
    served = [{each.get("kind") for each in cluster["status"].get("apiResourceTypes") or ()} for cluster in clusters]
    return all(SERVICE_EXPORTS.kind in kinds for kinds in served)


async def endpoints(member: Member) -> dict[str, int]:
    """Return the ready endpoints of the Service in a member by the cluster that they come from, "" for its own."""
    found: dict[str, int] = {}
    for each in (await member.admin.list(ENDPOINT_SLICES, "default")).items:
        source = (each["metadata"].get("labels") or {}).get(SOURCE_CLUSTER, "")
        ready = sum(endpoint["conditions"]["ready"] for endpoint in each.get("endpoints") or ())
        found[source] = found.get(source, 0) + ready
    return {source: count for source, count in found.items() if count}


async def test_a_service_of_two_clusters_is_reached_from_a_third() -> None:
    async with a_world() as world:
        await export(world)
        north, east = world.members["north"], world.members["east"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        service = await north.admin.get(SERVICES, "web", "default")
        assert service["spec"]["type"] == "ClusterIP"
        assert service["spec"].get("selector") is None
        assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [("http", 80)]
        assert await endpoints(east) == {"": 2}, (
            "an exporting cluster that does not import keeps its own endpoints only"
        )

        async def statuses() -> tuple[Any, Any]:
            exported = await world.user.get(SERVICE_EXPORTS, "web", "default")
            imported = await world.user.get(SERVICE_IMPORTS, "web", "default")
            valid = conditions.find((exported.get("status") or {}).get("conditions"), "Valid") or {}
            return valid.get("message"), (imported.get("status") or {}).get("clusters")

        await world.until_equal(statuses, ("exported by east, west", [{"cluster": "east"}, {"cluster": "west"}]))


async def test_endpoints_follow_the_pods() -> None:
    async with a_world() as world:
        await export(world)
        north = world.members["north"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        await world.scale("web", 3)
        await world.until_equal(lambda: endpoints(north), {"east": 3, "west": 3})
        await world.user.delete(SERVICE_EXPORTS, "web", "default")
        await world.until_equal(lambda: endpoints(north), {})


async def test_an_importing_cluster_that_also_runs_the_service_keeps_its_selector() -> None:
    async with a_world() as world:
        await export(world, importers=EVERYWHERE)
        await world.until_equal(lambda: endpoints(world.members["east"]), {"": 2, "west": 2})
        await world.until_equal(lambda: endpoints(world.members["north"]), {"east": 2, "west": 2})
        service = await world.members["east"].admin.get(SERVICES, "web", "default")
        assert service["spec"]["selector"] == {"app": "web"}


async def test_the_service_leaves_where_its_import_ends() -> None:
    async with a_world() as world:
        await export(world)
        north = world.members["north"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        await world.user.delete(SERVICE_IMPORTS, "web", "default")
        await world.until_equal(lambda: endpoints(north), {})
        await world.until_equal(lambda: north.find(SERVICES, "web"), None)
        assert await world.members["east"].find(SERVICES, "web") is not None


async def test_a_lost_clusters_endpoints_leave_when_its_pods_would_and_return_with_it() -> None:
    async with a_world(toleration_s=30, guard_share=1.0) as world:
        await export(world)
        north, east = world.members["north"], world.members["east"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.pass_time(10)
        assert await endpoints(north) == {"east": 2, "west": 2}, "its pods may still run"
        await world.until_equal(lambda: endpoints(north), {"west": 2})
        east.line.mode = "up"
        await world.until_ready("east")
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        await world.until_available("web", 4)


async def test_a_remedy_cuts_the_traffic_of_a_cluster_while_it_is_active() -> None:
    async with a_world() as world:
        await export(world)
        north = world.members["north"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        spec = {"clusters": ["east"], "holdSeconds": 0, "actions": [{"type": "CutTraffic"}]}
        header = {"apiVersion": REMEDIES.api_version, "kind": REMEDIES.kind, "metadata": {"name": "cut"}}
        await world.create(REMEDIES, {**header, "spec": spec})
        await world.until_equal(lambda: endpoints(north), {"west": 2})
        await world.user.delete(REMEDIES, "cut")
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})


async def test_a_restart_deletes_no_endpoint_of_a_cluster_that_does_not_answer() -> None:
    async with a_world() as world:
        await export(world)
        north, east = world.members["north"], world.members["east"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        east.line.mode = "down"
        await world.restart()
        await world.pass_time(30)
        assert await endpoints(north) == {"east": 2, "west": 2}
        east.line.mode = "up"
        await world.until_ready("east")
        await world.until_available("web", 4)


async def test_a_cluster_that_leaves_takes_its_endpoints_along() -> None:
    async with a_world() as world:
        await export(world)
        north = world.members["north"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        await world.user.delete(FEDERATED_CLUSTERS, "east")
        await world.until_equal(lambda: endpoints(north), {"west": 2})
        del world.members["east"]  # it keeps what it runs


async def test_an_export_that_ends_while_the_control_plane_is_away_takes_its_endpoints_along() -> None:
    async with a_world() as world:
        await export(world)
        north = world.members["north"]
        await world.until_equal(lambda: endpoints(north), {"east": 2, "west": 2})
        await world.stop()
        await world.user.delete(SERVICE_EXPORTS, "web", "default")
        await world.restart()
        await world.until_equal(lambda: endpoints(north), {})
