"""Attack: a tenant forges which version of a policy objects have, or holds the change of objects that are not his."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.tenants import MERGE, OURS, Tenants, tenants
from tests.support.world import World, a_world

from federation.api.names import CLUSTER_SELECTOR
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    DELIVERY_SUSPENSIONS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, Object
from federation.features.waves.policies.reconcile import _sample
from federation.planning.waves.policychanges import SPEC_BYTES_MAX
from federation.simulator.controllers.names import SIMULATOR_READY

MOVABLE: Object = {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {"policyContentChanged": True}}
IMAGE = "/spec/template/spec/containers/0/image"
RULES: Object = {"waves": [{"name": "few", "objects": 1}]}
FORGED: Object = {
    "revision": 9,
    "state": "RolledBack",
    "content": "0" * 32,
    "earlier": {"spec": {"schedulingMode": "Duplicate", "placement": [{"cluster": "west"}]}},
}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        yield served


async def test_no_user_of_a_namespace_writes_the_record_of_a_change(host: Tenants) -> None:
    editor, path = await host.client("editor"), f"{OURS}/namespaces/default/propagationpolicies"
    policy = a_policy({"east": 1}, changeRollout=RULES)
    answer = await editor.post(path, json={**policy, "status": {"changeRollout": FORGED}})
    assert answer.status_code == 201, answer.text
    assert "changeRollout" not in (answer.json().get("status") or {})
    name, forged = policy["metadata"]["name"], {"status": {"changeRollout": FORGED}}
    answer = await editor.patch(f"{path}/{name}", json=forged, headers=MERGE)
    assert "changeRollout" not in (answer.json().get("status") or {})
    answer = await editor.patch(f"{path}/{name}/status", json=forged, headers=MERGE)
    assert answer.status_code == 403, answer.text


async def test_a_policy_that_is_kept_twice_is_limited_and_a_change_with_its_first_rules_warns(host: Tenants) -> None:
    editor, path = await host.client("editor"), f"{OURS}/namespaces/default/propagationpolicies"
    labels = {f"label-{number}": "x" * 60 for number in range(SPEC_BYTES_MAX // 60)}
    large = a_policy({"east": 1}, changeRollout=RULES, clusterSelector=labels)
    answer = await editor.post(path, json=large)
    assert answer.status_code == 422, answer.text
    assert "spec.changeRollout" in answer.text
    assert (await editor.post(path, json=a_policy({"east": 1}))).status_code == 201
    change = {"spec": {"schedulingMode": "Duplicate", "changeRollout": RULES}}
    answer = await editor.patch(f"{path}/divide", json=change, headers=MERGE)
    assert "this change reaches all objects at once" in answer.headers["warning"]


async def test_an_objective_of_a_change_names_a_source_of_the_administrator(host: Tenants) -> None:
    editor, path = await host.client("editor"), f"{OURS}/namespaces/default/propagationpolicies"
    objective = {"name": "e", "source": "http", "errors": {"metric": "m", "bad": {"code": "5.."}}}
    rules = {"waves": [{"name": "few", "gate": {"objectives": [objective]}}]}
    answer = await editor.post(path, json=a_policy({"east": 1}, changeRollout=rules))
    assert answer.status_code == 422, answer.text
    assert "spec.changeRollout.waves[0].gate.objectives[0].source" in answer.text


async def test_broken_objects_and_policies_of_a_tenant_hold_nobody_else() -> None:
    """A tenant's broken workload is in a wave of a cluster-wide policy; his own policy waits for ever."""
    async with a_world(members=("east", "west")) as world:
        cluster_wide = a_policy({"east": 1}, changeRollout={"waves": [{"name": "half", "objects": 2}]})
        cluster_wide |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "all"}}
        await world.create(CLUSTER_PROPAGATION_POLICIES, cluster_wide)
        for name in ("web-1", "web-2", "broken", "own"):
            await world.create(DEPLOYMENTS, _broken(name) if name == "broken" else a_deployment(name, 1))
        await world.until_replicas("broken", {"east": 1})
        own = a_policy({"east": 1}, name="own", changeRollout={"waves": [{"name": "never", "pause": True}]})
        own["spec"]["resourceSelectors"][0]["name"] = "own"
        await world.create(PROPAGATION_POLICIES, own)
        await world.settle()
        to_west: Any = {"spec": {"placement": [{"cluster": "west", "preferences": {"weight": 1}}]}}
        movable = {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {"policyContentChanged": True}}
        to_west["spec"]["reschedulePolicy"] = movable
        await world.merge(PROPAGATION_POLICIES, "own", to_west)
        await world.merge(CLUSTER_PROPAGATION_POLICIES, "all", to_west, namespace="")
        await world.until_equal(lambda: _states(world), {"all": "Complete 1", "own": "Progressing 1"})
        assert await world.replicas("web-1") == await world.replicas("broken") == {"west": 1}
        assert await world.replicas("own") == {"east": 1}


async def _states(world: World) -> dict[str, str]:
    found = {}
    for resource, name in ((CLUSTER_PROPAGATION_POLICIES, "all"), (PROPAGATION_POLICIES, "own")):
        policy = await world.find(resource, name, "default" if resource.namespaced else "")
        record = ((policy or {}).get("status") or {}).get("changeRollout") or {}
        found[name] = f"{record.get('state')} {record.get('revision')}"
    return found


def _broken(name: str) -> Object:
    made = a_deployment(name, 1)
    made["spec"]["template"]["metadata"]["annotations"] = {SIMULATOR_READY: "false"}
    return made


@dataclass(frozen=True)
class Sabotage:
    """What a tenant does to his own objects while the administrator's change is under way."""

    name: str
    act: Callable[[World], Awaitable[None]]
    is_before: bool = False
    """Whether he does it before the wave, in the hope that it does not count as broken then."""

    def __str__(self) -> str:
        return self.name


async def _breaks_his_template(world: World) -> None:
    broken = {"spec": {"template": {"metadata": {"annotations": {SIMULATOR_READY: "false"}}}}}
    await world.merge(DEPLOYMENTS, "web-1", broken)


async def _asks_for_10000_cores(world: World) -> None:
    container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "10000"}}}
    await world.merge(DEPLOYMENTS, "web-1", {"spec": {"template": {"spec": {"containers": [container]}}}})


async def _creates_a_broken_object(world: World) -> None:
    await world.create(DEPLOYMENTS, _broken("late"))


async def _selects_no_cluster(world: World) -> None:
    nowhere = {"metadata": {"annotations": {CLUSTER_SELECTOR: '{"no":"cluster"}'}}}
    await world.merge(DEPLOYMENTS, "web-1", nowhere)


async def _overrides_it_himself(world: World) -> None:
    path = "/spec/template/metadata/annotations"
    override = an_override("west", path, {SIMULATOR_READY: "false"})
    override["spec"]["resourceSelectors"][0]["name"] = "web-1"
    override["spec"]["overrideRules"][0]["overriders"]["jsonpatch"][0]["operator"] = "add"
    await world.create(OVERRIDE_POLICIES, override)


async def _suspends_its_delivery(world: World) -> None:
    suspension = {
        "apiVersion": DELIVERY_SUSPENSIONS.api_version,
        "kind": "DeliverySuspension",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {
            "reason": "no reason",
            "owner": "tenant",
            "until": "2035-01-01T00:00:00Z",
            "objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-1"}],
        },
    }
    await world.create(DELIVERY_SUSPENSIONS, suspension)


async def _deletes_its_settings(world: World) -> None:
    await world.user.delete(CONFIGMAPS, "settings", "default")


async def _removes_a_key_of_its_settings(world: World) -> None:
    await world.merge(CONFIGMAPS, "settings", {"data": {"mode": None}})


async def _pauses_it(world: World) -> None:
    await world.merge(DEPLOYMENTS, "web-1", {"spec": {"paused": True}})


SABOTAGES = (
    Sabotage("breaks his template", _breaks_his_template),
    Sabotage("asks for 10,000 cores", _asks_for_10000_cores),
    Sabotage("creates a broken object", _creates_a_broken_object),
    Sabotage("selects no cluster", _selects_no_cluster),
    Sabotage("overrides it himself", _overrides_it_himself),
    Sabotage("deletes its settings", _deletes_its_settings),
    Sabotage("removes a key of its settings", _removes_a_key_of_its_settings),
    Sabotage("suspends its delivery", _suspends_its_delivery),
    Sabotage("has suspended its delivery", _suspends_its_delivery, is_before=True),
)


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=str)
async def test_what_a_tenant_changes_himself_during_a_wave_proves_nothing(sabotage: Sabotage) -> None:
    """The gate soaks, so that what the tenant does happens after his objects have the new version."""
    async with a_world(members=("east", "west")) as world:
        waves = [{"name": "all", "gate": {"soakSeconds": 120}, "timeoutSeconds": 60}]
        policy = a_policy({"east": 1}, reschedulePolicy=MOVABLE, changeRollout={"waves": waves})
        policy |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "all"}}
        await world.create(CLUSTER_PROPAGATION_POLICIES, policy)
        settings: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "default"},
        }
        settings["data"] = {"mode": "fast"}
        await world.create(CONFIGMAPS, settings)
        source = {"configMapKeyRef": {"name": "settings", "key": "mode"}}
        for name in ("web-1", "web-2"):
            workload = a_deployment(name, 1)
            if name == "web-1":
                workload["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MODE", "valueFrom": source}]
            await world.create(DEPLOYMENTS, workload)
        await world.until_replicas("web-1", {"east": 1})
        await world.settle()
        if sabotage.is_before:
            await sabotage.act(world)
            await world.settle()
        to_west: Any = {"spec": {"placement": [{"cluster": "west", "preferences": {"weight": 1}}]}}
        await world.merge(CLUSTER_PROPAGATION_POLICIES, "all", to_west, namespace="")
        await world.until_equal(lambda: _wave_of(world), "all")
        if not sabotage.is_before:
            await sabotage.act(world)
        await world.pass_time(300)
        assert (await _states(world))["all"] == "Complete 1"
        assert await world.replicas("web-2") == {"west": 1}
        if sabotage.act is _deletes_its_settings:
            await world.create(CONFIGMAPS, settings)
        await world.merge(CONFIGMAPS, "settings", {"data": settings["data"]})
        await world.settle()
        if sabotage.act is _suspends_its_delivery:
            await world.user.delete(DELIVERY_SUSPENSIONS, "mine", "default")  # so that the world ends as it must
            await world.settle()


async def _wave_of(world: World) -> str:
    policy = await world.find(CLUSTER_PROPAGATION_POLICIES, "all", "")
    record = ((policy or {}).get("status") or {}).get("changeRollout") or {}
    started = [wave["name"] for wave in record.get("waves") or () if wave.get("bound")]
    return str(started[-1]) if started else ""


async def test_a_workload_that_its_users_have_paused_holds_no_change_of_its_template() -> None:
    """The cluster-wide OverridePolicy of an administrator changes templates; a paused Deployment replaces no pod."""
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        for name in ("web-1", "web-2"):
            await world.create(DEPLOYMENTS, a_deployment(name, 1))
        override = an_override("east", IMAGE, "nginx:1.28", name="all")
        override |= {"kind": "ClusterOverridePolicy", "metadata": {"name": "all"}}
        override["spec"]["changeRollout"] = {"waves": [{"name": "all", "timeoutSeconds": 60}]}
        await world.create(CLUSTER_OVERRIDE_POLICIES, override)
        await world.until_replicas("web-1", {"east": 1})
        await world.settle()
        await _pauses_it(world)
        await world.settle()
        rules = an_override("east", IMAGE, "nginx:1.29")["spec"]["overrideRules"]
        await world.merge(CLUSTER_OVERRIDE_POLICIES, "all", {"spec": {"overrideRules": rules}}, namespace="")
        await world.pass_time(300)
        policy = await world.find(CLUSTER_OVERRIDE_POLICIES, "all", "")
        assert policy is not None
        assert policy["status"]["changeRollout"]["state"] == "Complete"
        await world.merge(DEPLOYMENTS, "web-1", {"spec": {"paused": False}})
        await world.settle()


def test_objectives_of_a_wave_are_measured_in_each_namespace_in_turn() -> None:
    """A thousand objects of a tenant are a part of what is measured, and not all of it."""
    own = [f"rival/web-{number:04}" for number in range(1000)]
    others = [f"team-{number}/web" for number in range(30)]
    found = _sample([*own, *others])
    assert set(others) < set(found)
    assert len([each for each in found if each in own]) == 20
