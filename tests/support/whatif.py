"""Objects for `scheduling/whatif`: clusters, a policy and Deployments in the state that the controllers produce."""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.admission.deviceselectors import selects
from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import Object, Resource
from federation.features.catalogue import decision_chain
from federation.planning.federatedobject import builder
from federation.planning.overrides.policymatching import idle_controllers
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW
from federation.scheduling.framework.types import Exchange
from federation.scheduling.whatif.compute import compute
from federation.scheduling.whatif.pipelinerun import run_pipeline
from federation.scheduling.whatif.planresult import Plan
from federation.scheduling.whatif.state import CompiledState, ObjectChange, ObjectSet

PLUGINS = load_plugins(selects=selects)
SPREADS = decision_chain()
DEPLOYMENT: FederatedType = next(t for t in map(from_config, default_type_configs()) if t.name == "deployments.apps")
_SERVED = [{"group": "apps", "version": "v1", "kind": "Deployment", "pluralName": "deployments", "scope": "Namespaced"}]


def a_cluster(name: str, **labels: str) -> Object:
    """Return a FederatedCluster that is joined and ready."""
    conditions = [
        {"type": type_, "status": status}
        for type_, status in ((names.CLUSTER_JOINED, "True"), (names.CLUSTER_READY, "True"), ("Offline", "False"))
    ]
    room = {"cpu": "100", "memory": "100Gi"}
    return {
        "apiVersion": FEDERATED_CLUSTERS.api_version,
        "kind": "FederatedCluster",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": []},
        "status": {
            "conditions": conditions,
            "apiResourceTypes": _SERVED,
            "resources": {"allocatable": room, "available": room},
        },
    }


def a_source(name: str, replicas: int = 6, generation: int = 1, **annotations: str) -> Object:
    """Return a Deployment as the API server stores it; one replica requests half a core."""
    container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "500m"}}}
    metadata = {"name": name, "namespace": "default", "uid": name, "generation": generation, "annotations": annotations}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }


def a_world(
    clusters: Iterable[Object],
    policies: Iterable[Object] = (),
    overrides: Iterable[Object] = (),
    sources: Iterable[Object] = (),
) -> ObjectSet:
    """Return the objects after the controllers have processed them."""
    kinds: dict[Resource, list[Object]] = {
        FEDERATED_CLUSTERS: list(clusters),
        FEDERATED_TYPE_CONFIGS: default_type_configs(),
        PROPAGATION_POLICIES: list(policies),
        OVERRIDE_POLICIES: list(overrides),
    }
    world = ObjectSet(kinds)
    state = CompiledState(world, world, PLUGINS, SPREADS, NOW)
    made = [builder.build(s, DEPLOYMENT, idle=idle_controllers(state.bindings, s)) for s in sources]
    for obj in made:
        obj["metadata"] |= {"resourceVersion": "1", "generation": 1, "uid": f"uid-{obj['metadata']['name']}"}
    return ObjectSet({**kinds, FEDERATED_OBJECTS: [settled(obj, state) for obj in made]})


def settled(federated: Mapping[str, Any], state: CompiledState) -> Object:
    """Return the federated object at the end of its pipeline."""
    return dict(run_to_end(run_pipeline(federated, DEPLOYMENT, state, now=NOW)).federated)


def run_to_end(exchange: Exchange[Any]) -> Any:
    """Return the result of an exchange without requests."""
    try:
        requests = next(exchange)
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"it asks: {requests}")


def plan(world: ObjectSet, *changes: ObjectChange, **options: Any) -> Plan:
    """Return the plan for the changes."""
    result: Plan = run_to_end(compute(world, changes, PLUGINS, SPREADS, now=NOW, **options))
    return result


def change(world: ObjectSet, resource: Resource, after: Object) -> ObjectChange:
    """Return the change that creates or replaces an object."""
    metadata = after["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    return ObjectChange(resource, namespace, name, world.get(resource, namespace, name), after)
