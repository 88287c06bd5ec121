"""Arrivals for a fleet and its twin, and the placements of both."""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.client.client import Client, PatchType
from federation.planning.federatedobject.placements import overrides_of, placement_of
from federation.twin.steps import Arrival
from tests.support.manifests import a_deployment, a_policy

Placed = Mapping[str, Any]
"""By federated object: its clusters, and their replicas."""
STRATEGIES = ("divided", "spread", "dynamic", "copied", "packed")


def policies(clusters: Sequence[str]) -> list[Object]:
    """Return a policy for each of `STRATEGIES`, for Deployments with that label."""
    divided = a_policy({name: number + 1 for number, name in enumerate(clusters)}, name="divided")
    spread = a_policy({}, name="spread", maxClusters=2)
    dynamic = a_policy({}, name="dynamic")
    copied = a_policy({}, name="copied", schedulingMode="Duplicate")
    packed = a_policy({}, name="packed", replicasStrategy="Binpack")
    found = [divided, spread, dynamic, copied, packed]
    for policy in found:
        policy["spec"]["resourceSelectors"][0]["labelSelector"] = {
            "matchLabels": {"strategy": policy["metadata"]["name"]}
        }
        if not policy["spec"]["placement"]:
            del policy["spec"]["placement"]
    return found


def a_workload(name: str, rng: random.Random) -> Object:
    """Return a Deployment of some size, for one of the policies."""
    found = a_deployment(name, replicas=rng.randint(1, 9), strategy=rng.choice(STRATEGIES))
    requests = {"cpu": f"{rng.choice((50, 100, 250, 500, 1500))}m", "memory": f"{rng.choice((64, 128, 512))}Mi"}
    found["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}
    return found


def arrivals(count: int, seed: int, every_s: float) -> list[Arrival]:
    """Return new Deployments, and others that are scaled."""
    rng = random.Random(seed)
    known: list[Object] = []
    found = []
    for number in range(count):
        if known and rng.random() < 0.2:
            manifest = rng.choice(known)
            manifest = {**manifest, "spec": {**manifest["spec"], "replicas": rng.randint(1, 12)}}
        else:
            manifest = a_workload(f"app-{number}", rng)
            known.append(manifest)
        found.append(Arrival((number + 1) * every_s, manifest))
    return found


async def placements(host: Client) -> Placed:
    """Return where every Deployment is."""
    return {
        obj["metadata"]["name"]: placed(obj)
        for obj in (await host.list(FEDERATED_OBJECTS)).items
        if obj["spec"]["template"]["kind"] == "Deployment"
    }


async def place(
    host: Client, pass_time: Callable[[float], Awaitable[None]], arriving: Sequence[Arrival], every_s: float
) -> list[tuple[str, Any]]:
    """Apply the arrivals; return the strategy of each, and where it is placed before the next one arrives."""
    found = []
    for arrival in arriving:
        metadata = arrival.manifest["metadata"]
        await host.patch(
            DEPLOYMENTS,
            metadata["name"],
            arrival.manifest,
            patch_type=PatchType.APPLY,
            namespace="default",
            field_manager="twin",
            force=True,
        )
        await pass_time(every_s)
        federated = await host.get(FEDERATED_OBJECTS, f"{metadata['name']}-deployments.apps", "default")
        found.append((metadata["labels"]["strategy"], placed(federated)))
    return found


def placed(federated: Object) -> tuple[list[str], dict[str, list[Any]]]:
    """Return the clusters of a federated object, and the replicas in each, [] for those of its template."""
    patches = overrides_of(federated, names.GLOBAL_SCHEDULER)
    replicas = {cluster: [patch["value"] for patch in each] for cluster, each in patches.items()}
    return placement_of(federated, names.GLOBAL_SCHEDULER), replicas
