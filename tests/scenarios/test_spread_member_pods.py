"""WorkloadSpreads across members: what their pods get, which pods stay, and workloads of every kind."""

from collections import Counter
from collections.abc import Mapping

import pytest
from tests.support.federatedspreads import (
    POOLS,
    V1ALPHA1,
    a_node,
    a_spread,
    a_subset,
    begin,
    pods,
    statuses,
    until_layout,
)
from tests.support.manifests import a_policy
from tests.support.simulatedmember import a_template, a_workload, an_object
from tests.support.world import World, a_world
from tests.support.worldmember import Member

from federation.api.crds import crd_manifests
from federation.api.resources import (
    CLONE_SETS,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    PROPAGATION_POLICIES,
    WORKLOAD_SPREADS,
)
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import (
    CONFIGMAPS,
    CRDS,
    JOBS,
    NAMESPACES,
    REPLICA_SETS,
    Object,
    Resource,
)

TWO = ("east", "north")
GAMES = Resource("example.com", "v1", "Game", "games")
VIRTUAL = {"key": "virtual", "value": "yes", "effect": "NoSchedule"}
PATCH = {
    "metadata": {"labels": {"sidecar": "on"}, "annotations": {"tier": "elastic"}},
    "spec": {
        "volumes": [{"name": "cache", "emptyDir": {}}],
        "containers": [
            {
                "name": "web",
                "image": "nginx:1.28",
                "command": ["nginx", "-g", "daemon off;"],
                "env": [{"name": "POOL", "value": "elastic"}],
                "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}},
                "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
                "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
            },
        ],
    },
}


async def place(world: World, resource: Resource, workload: Object) -> None:
    """Create a workload and a policy that divides its kind over all members."""
    selector = {"apiVersion": resource.api_version, "kind": resource.kind}
    weights = dict.fromkeys(world.members, 1)
    await world.create(PROPAGATION_POLICIES, a_policy(weights, resourceSelectors=[selector]))
    await world.create(resource, workload)


async def test_pods_of_each_subset_get_its_patch_tolerations_and_preferences() -> None:
    spreading = {"east": (a_node("base"),), "north": (a_node("serverless", taints=(VIRTUAL,)),)}
    preference = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["serverless"]}]}
    elastic = a_subset(
        "elastic",
        "north",
        patch=PATCH,
        tolerations=[{"key": "virtual", "operator": "Exists"}],
        preferredNodeSelectorTerms=[{"weight": 100, "preference": preference}],
    )
    async with a_world(members=TWO, spreading=spreading) as world:
        await begin(world, a_spread(a_subset("base", "east", "base", 2), elastic), 5)
        await until_layout(world, {("east", "base", "base"): 2, ("north", "serverless", "elastic"): 3})
        found = {"east": [pod for c, pod in await pods(world) if c == "east"]}
        found["north"] = [pod for c, pod in await pods(world) if c == "north"]
        for pod in found["east"]:
            assert "sidecar" not in pod["metadata"]["labels"]
            assert pod["spec"]["containers"][0]["image"] == "nginx:1.27"
        for pod in found["north"]:
            container = pod["spec"]["containers"][0]
            assert pod["metadata"]["labels"]["sidecar"] == "on"
            assert pod["metadata"]["annotations"]["tier"] == "elastic"
            wanted = PATCH["spec"]["containers"][0]
            for field in ("image", "command", "env", "resources", "volumeMounts"):
                assert container[field] == wanted[field]
            assert container["readinessProbe"]["httpGet"]["port"] == 80
            assert pod["spec"]["volumes"] == PATCH["spec"]["volumes"]
            preferred = pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
            assert preferred == [{"weight": 100, "preference": preference}]


async def test_running_pods_are_adopted_and_only_new_ones_leave_their_cluster_and_get_the_sidecar() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        await begin(world, None, 8)
        await world.until_available("web", 8)
        before = {pod["metadata"]["uid"]: cluster for cluster, pod in await pods(world)}
        local = [a_subset("east", "east", "", 4), a_subset("north", "north", "", 4)]
        eci = {"metadata": {"labels": {"alibabacloud.com/eci": "true"}}}
        await world.create(V1ALPHA1, a_spread(*local, a_subset("eci", "north", patch=eci)))
        await world.until_equal(lambda: statuses(world), [("east", 4, 0), ("north", 4, 0), ("eci", 0, -1)])
        await world.scale("web", 10)
        await world.until_equal(lambda: statuses(world), [("east", 4, 0), ("north", 4, 0), ("eci", 2, -1)])
        await world.until_available("web", 10)
        after = {pod["metadata"]["uid"]: (cluster, pod) for cluster, pod in await pods(world)}
        assert {uid: after[uid][0] for uid in before} == before
        new = [after[uid] for uid in after.keys() - before.keys()]
        assert [(c, pod["metadata"]["labels"].get("alibabacloud.com/eci")) for c, pod in new] == [("north", "true")] * 2
        assert all("alibabacloud.com/eci" not in after[uid][1]["metadata"]["labels"] for uid in before)


async def test_packages_are_filled_one_after_the_other_over_two_clusters() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        packages = [
            a_subset(
                f"bandwidthPackage-{number}",
                TWO[number % 2],
                limit=3,
                patch={"metadata": {"annotations": {"eip": f"p-{number}"}}},
            )
            for number in range(1, 11)
        ]
        await begin(world, a_spread(*packages, a_subset("others", "")), 35)
        full = {f"p-{number}": 3 for number in range(1, 11)}
        await world.until_equal(lambda: packages_of(world), full | {"": 5})
        await world.scale("web", 20)
        kept = {f"p-{number}": 3 for number in range(1, 7)} | {"p-7": 2}
        await world.until_equal(lambda: packages_of(world), kept)


async def packages_of(world: World) -> Mapping[str, int]:
    """Return the number of pods by package, "" for those without one."""
    return dict(Counter((pod["metadata"].get("annotations") or {}).get("eip", "") for _, pod in await pods(world)))


async def test_a_job_is_spread() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        subsets = a_subset("own", "east", "base", 1), a_subset("rest", "north", "spot")
        await world.create(V1ALPHA1, a_spread(*subsets, kind="Job", api_version="batch/v1"))
        template = a_template(restartPolicy="Never")
        job = an_object(JOBS, "web", spec={"parallelism": 4, "completions": 4, "template": template})
        await place(world, JOBS, job)
        await until_layout(world, {("east", "base", "own"): 1, ("north", "spot", "rest"): 3})


@pytest.mark.parametrize("resource", [CLONE_SETS, REPLICA_SETS], ids=["CloneSet", "ReplicaSet"])
async def test_clone_sets_and_replica_sets_are_spread(resource: Resource) -> None:
    definitions = [crd for crd in crd_manifests() if crd["metadata"]["name"] == resource.group_resource]
    async with a_world(members=TWO, spreading=POOLS) as world:
        for member in world.members.values():
            await member.registry.install_crds(definitions)
        await world.until(lambda: _is_served(world, resource))
        subsets = a_subset("own", "east", "base", 2), a_subset("rest", "north", "spot")
        await world.create(V1ALPHA1, a_spread(*subsets, kind=resource.kind, api_version=resource.api_version))
        await place(world, resource, a_workload(resource, replicas=5))
        await until_layout(world, {("east", "base", "own"): 2, ("north", "spot", "rest"): 3})
        await world.merge(resource, "web", {"spec": {"replicas": 3}})
        await until_layout(world, {("east", "base", "own"): 2, ("north", "spot", "rest"): 1})


async def _is_served(world: World, resource: Resource) -> bool:
    """Return whether all clusters are known to serve the kind."""
    clusters = (await world.user.list(FEDERATED_CLUSTERS)).items
    wanted = (resource.group, resource.kind)
    served = [(each.get("status") or {}).get("apiResourceTypes") or () for each in clusters]
    return all(wanted in [(type_.get("group", ""), type_["kind"]) for type_ in types] for types in served)


async def test_workloads_of_one_custom_object_share_the_limits_of_their_member() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        await world.create(CRDS, a_definition())
        for member in world.members.values():
            await member.admin.create(CRDS, a_definition())
            await allow(member)
        subsets = a_subset("own", "east", "base", 3), a_subset("rest", "", "spot")
        await world.create(V1ALPHA1, a_spread(*subsets, kind="Game", api_version=GAMES.api_version))
        policy = a_policy({}, resourceSelectors=[{"apiVersion": GAMES.api_version, "kind": "Game"}])
        del policy["metadata"]["namespace"]
        await world.create(CLUSTER_PROPAGATION_POLICIES, {**policy, "kind": "ClusterPropagationPolicy"})
        await world.create(GAMES, an_object(GAMES, "web", spec={"replicas": 8}))
        games = await world.until(lambda: games_of(world, 8))
        for name, game in games.items():
            for color, count in (("blue", game["spec"]["replicas"] - 1), ("green", 1)):
                await world.members[name].admin.create(REPLICA_SETS, a_part(game, color, count))
        expected = {("east", "base", "own"): 3, ("east", "spot", "rest"): games["east"]["spec"]["replicas"] - 3}
        expected[("north", "spot", "rest")] = 8 - games["east"]["spec"]["replicas"]
        await until_layout(world, {key: count for key, count in expected.items() if count})
        colors = Counter(pod["metadata"]["labels"]["color"] for _, pod in await pods(world))
        assert colors == Counter(blue=8 - len(games), green=len(games))


async def test_a_workload_does_not_wait_for_ever_for_members_that_refuse_its_limits() -> None:
    async with a_world(members=TWO, spreading=POOLS) as world:
        await world.create(CRDS, a_definition())
        for member in world.members.values():
            await member.admin.create(CRDS, a_definition())
        spread = a_spread(a_subset("own", "east", "base", 3), kind="Game", api_version=GAMES.api_version)
        await world.create(V1ALPHA1, spread)
        policy = a_policy({}, resourceSelectors=[{"apiVersion": GAMES.api_version, "kind": "Game"}])
        del policy["metadata"]["namespace"]
        await world.create(CLUSTER_PROPAGATION_POLICIES, {**policy, "kind": "ClusterPropagationPolicy"})
        await world.create(GAMES, an_object(GAMES, "web", spec={"replicas": 4}))
        await world.until(lambda: games_of(world, 4))
        assert await world.members["east"].find(WORKLOAD_SPREADS, "web") is None
        for member in world.members.values():
            await allow(member)
        await world.until(lambda: world.members["east"].find(WORKLOAD_SPREADS, "web"))


async def games_of(world: World, total: int) -> dict[str, Object]:
    """Return the custom objects by member once they have all replicas, {} before."""
    found = {name: await member.find(GAMES, "web") for name, member in world.members.items()}
    games = {name: game for name, game in found.items() if game is not None}
    return games if sum(game["spec"]["replicas"] for game in games.values()) == total else {}


def a_part(game: Object, color: str, replicas: int) -> Object:
    """Return a ReplicaSet that the custom object controls."""
    template = a_template()
    template["metadata"]["labels"]["color"] = color
    part = a_workload(REPLICA_SETS, color, template, replicas=replicas)
    part["spec"]["selector"]["matchLabels"]["color"] = color
    part["metadata"]["ownerReferences"] = [controller_reference(game, GAMES.api_version, GAMES.kind)]
    return part


async def allow(member: Member) -> None:
    """Write the whitelist of custom workloads of a member."""
    text = '{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}'
    await member.admin.create(NAMESPACES, an_object(NAMESPACES, "kruise-system"))
    data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": text}
    metadata = {"namespace": "kruise-system"}
    await member.admin.create(CONFIGMAPS, an_object(CONFIGMAPS, "kruise-configuration", metadata=metadata, data=data))


def a_definition() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Game", "plural": "games"}
    versions = [{**version, "subresources": {"scale": paths}}]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return an_object(CRDS, "games.example.com", spec=spec)
