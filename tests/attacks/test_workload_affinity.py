"""What a tenant can do with rules about other workloads: nothing to other namespaces, and nothing that costs much."""

from typing import Any

import pytest
from tests.support.cputime import cpu_s
from tests.support.manifests import a_policy
from tests.support.whatif import DEPLOYMENT, PLUGINS, SPREADS, a_cluster, a_source, settled
from tests.support.world import a_world
from tests.unit.scheduling.affinity.test_index import an_index, rule, workload

from federation.api import names
from federation.api.federatedtype import default_type_configs
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import Object
from federation.controllers.schedule.names import EVENT_INVALID_PROPAGATION_POLICY
from federation.planning.federatedobject import builder
from federation.planning.federatedobject.placements import placement_of
from federation.scheduling.affinity.relations import relations_of
from federation.scheduling.framework.testing import NOW, a_unit
from federation.scheduling.framework.testing import a_cluster as a_scheduled_cluster
from federation.scheduling.whatif.state import CompiledState, ObjectSet

EVERYTHING = {"labelSelector": {}}


def one_cluster(name: str, **spec: Any) -> Object:
    policy = a_policy({}, name=name, maxClusters=1, **spec)
    del policy["spec"]["placement"]
    return policy


def placements(**tenants: tuple[str, Object]) -> dict[str, list[str]]:
    """Return the clusters of one Deployment in each of several namespaces, given with the spec of its policy, in order."""
    policies, made = [], []
    for namespace, (name, spec) in tenants.items():
        policy = one_cluster("own", **spec)
        policies.append({**policy, "metadata": {"name": "own", "namespace": namespace}})
        source = a_source(name, 1)
        source["metadata"] |= {"namespace": namespace, "labels": {"app": name}}
        federated = builder.build(source, DEPLOYMENT, idle=("kubeadmiral.io/overridepolicy-controller",))
        federated["metadata"] |= {"resourceVersion": "1", "generation": 1, "uid": name}
        made.append(federated)
    world = ObjectSet(
        {
            FEDERATED_CLUSTERS: [a_cluster("east")],
            FEDERATED_TYPE_CONFIGS: default_type_configs(),
            PROPAGATION_POLICIES: policies,
            FEDERATED_OBJECTS: made,
        }
    )
    state = CompiledState(world, world, PLUGINS, SPREADS, NOW)
    return {each["metadata"]["namespace"]: placement_of(settled(each, state), names.GLOBAL_SCHEDULER) for each in made}


def test_a_tenant_neither_finds_nor_displaces_workloads_of_other_namespaces() -> None:
    about_db: Object = {"labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["*", "victim"]}
    everything = {**EVERYTHING, "namespaces": ["*"]}
    found = placements(
        victim=("db", {}),
        hermit=("web", {"workloadAntiAffinity": {"required": [everything]}}),
        spy=("probe", {"workloadAffinity": {"required": [about_db]}}),
        neighbour=("api", {}),
    )
    assert found == {"victim": ["east"], "hermit": ["east"], "spy": [], "neighbour": ["east"]}


async def test_a_tenants_policy_has_no_field_for_namespaces_and_a_cluster_wide_one_has() -> None:
    async with a_world(members=("east",)) as world:
        term = {**EVERYTHING, "namespaces": ["*"]}
        for field in ("workloadAffinity", "workloadAntiAffinity"):
            stored = await world.create(
                PROPAGATION_POLICIES, one_cluster(field.lower(), **{field: {"required": [term]}})
            )
            assert stored["spec"][field]["required"] == [EVERYTHING]
        wide = one_cluster("wide", workloadAntiAffinity={"required": [term]})
        wide |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "wide"}}
        stored = await world.create(CLUSTER_PROPAGATION_POLICIES, wide)
        assert stored["spec"]["workloadAntiAffinity"]["required"] == [term]


@pytest.mark.parametrize(
    "term",
    [
        {},
        {"labelSelector": {"matchLabels": {"app": "x" * 64}}},
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
        {"matchLabelKeys": ["not a key"]},
        {**EVERYTHING, "topologyKey": "not a key"},
    ],
    ids=["no-workloads", "value", "no-values", "label-key", "topology-key"],
)
async def test_what_no_rule_can_mean_is_refused_or_reported(term: Object) -> None:
    async with a_world(members=("east",)) as world:
        try:
            await world.create(PROPAGATION_POLICIES, one_cluster("odd", workloadAffinity={"required": [term]}))
        except ApiError:
            return
        await world.settle()
        assert any(reason == EVENT_INVALID_PROPAGATION_POLICY for reason, _ in await world.events())


def test_thousands_of_workloads_with_rules_about_each_other_cost_milliseconds_each() -> None:
    about_all = rule(is_apart=True, labelSelector={})
    index = an_index(*(workload(f"w{at}", "a", rules=(about_all,)) for at in range(3000)))
    own, clusters = workload("w0", rules=(about_all,)), {"a": a_scheduled_cluster("a").built()}
    relations, taken_s = cpu_s(lambda: relations_of(index, own, a_unit(), clusters), 0.5)
    assert taken_s + cpu_s(lambda: index.observe(own.key, own), 0.5)[1] < 0.5
    assert len(relations) == 2
