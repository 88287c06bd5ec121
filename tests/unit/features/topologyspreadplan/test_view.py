"""The evaluation of a sharded service over HTTP, and its printed form."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.world import World, a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, RBAC, binding, role, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import PROPAGATION_POLICIES, TOPOLOGY_SPREAD_PLANS
from federation.apimachinery.resources import NODES, STATEFUL_SETS
from federation.apiserver.auth.identity import Attributes, User
from federation.features.topologyspreadplan.planoutput import print_evaluation, print_plan

URL = "/federation/v1/topology?namespace=default&name=redis"
LABELS = {"app": "redis"}


async def _fill(world: World) -> None:
    """Create a service of two shards in two zones with one node each, and its policy."""
    member = world.members["east"]
    for zone in "ab":
        labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": f"node-{zone}"}
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"pods": "10"}}
        await member.admin.create(NODES, {"metadata": {"name": f"node-{zone}", "labels": labels}, "status": ready})
    policy = {"schedulingMode": "Duplicate", "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]}
    metadata = {"name": "redis", "namespace": "default"}
    await world.create(PROPAGATION_POLICIES, {"metadata": metadata, "spec": policy})
    spec = {"selector": {"matchLabels": LABELS}, "shardLabel": "shard", "zones": [{"name": "a"}, {"name": "b"}]}
    await world.create(TOPOLOGY_SPREAD_PLANS, {"metadata": metadata, "spec": spec})
    for number in range(2):
        labels = {**LABELS, "shard": str(number)}
        shard: Any = {
            "metadata": {"name": f"redis-{number}", "namespace": "default"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "redis", "image": "redis:7.4"}]},
                },
            },
        }
        await world.create(STATEFUL_SETS, shard)
    await world.settle()


async def test_the_answer_has_plan_nodes_and_violations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with a_world(members=("east",)) as world:
        await _fill(world)
        async with served(world, tmp_path) as (_, admin):
            answer = (await admin.get(URL)).json()
            assert answer["plan"]["limits"] == {"node": 1, "zone": 1}
            assert [(node["name"], node["pods"]) for node in answer["nodes"]] == [("node-a", 2), ("node-b", 2)]
            assert [each["rule"] for each in answer["violations"]] == ["V2", "V2", "V9"]
            missing = await admin.get(URL.replace("redis", "none"))
            assert (missing.status_code, "not found" in missing.json()["message"]) == (404, True)
            assert (await admin.get(f"{URL}&cluster=a")).status_code == 400
        capsys.readouterr()  # log lines
        print_evaluation(answer)
        printed = capsys.readouterr().out.splitlines()
        assert printed[1].split() == ["a", "east", "node-a", "2"]
        assert printed[5].split(maxsplit=4) == ["V2", "warning", "2", "1", answer["violations"][0]["message"]]
        print_evaluation({**answer, "violations": []})
        assert capsys.readouterr().out.endswith("\nno violations\n")
        print_plan("redis", answer["plan"])
        assert capsys.readouterr().out.splitlines()[-1].split() == ["redis-1", "1", "1", "a,", "b"]


async def test_the_evaluation_needs_permission_to_read_the_plan(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        await _fill(world)
        async with served(world, tmp_path) as (parts, admin):
            paths = {"verbs": ["get"], "nonResourceURLs": ["/federation/*"]}
            await admin.post(f"{RBAC}/clusterroles", json=role("paths", paths, rule("get", "configmaps")))
            await admin.post(f"{RBAC}/clusterrolebindings", json=binding("p", "ClusterRole", "paths", user("bob")))
            await wait_allowed(parts, User("bob"), Attributes("get", "", "v1", "configmaps"))
            async with connect(parts.app, BOB) as bob:
                refused = await bob.get(URL)
                assert (refused.status_code, "topologyspreadplans" in refused.json()["message"]) == (403, True)
