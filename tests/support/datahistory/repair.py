"""The end of a history: faults, waits and restrictions end, what is out joins, and what waits is approved."""

from federation.api import names
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_TAINT_POLICIES,
    DELIVERY_SUSPENSIONS,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    OVERRIDE_POLICIES,
    PROJECTS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from tests.support.datahistory.apps import APPS, policy_of
from tests.support.datahistory.judge import cluster_of
from tests.support.datahistory.steps import Steps


async def repair(steps: Steps) -> list[str]:
    """End all faults, waits and restrictions, join what is out, and approve what waits, until nothing does."""
    did = []
    for name, member in steps.world.members.items():
        if name not in steps.lost_for_ever:
            member.line.heal()
    for resource, name, namespace in (
        (CHANGE_FREEZES, "sale", ""),
        (DELIVERY_SUSPENSIONS, "copy", "default"),
        (FEDERATED_RESOURCE_QUOTAS, "team", "default"),
        (CLUSTER_TAINT_POLICIES, "net", ""),
        (PROJECTS, "team", ""),
    ):
        try:
            await steps.world.user.delete(resource, name, namespace)
        except NotFound:
            continue
    if await steps.world.find(OVERRIDE_POLICIES, "spoil") is not None:
        await steps.world.merge(OVERRIDE_POLICIES, "spoil", {"spec": {"overrideRules": []}})
    await steps.return_type()
    await steps.world.pass_time(15)
    for name in sorted(steps.lost_for_ever & set(steps.joined)):
        steps.judge.keeps(steps.world.members[name], "unjoin by force")
        await steps.world.unjoin_by_force(name)
    for cluster in (await steps.world.user.list(FEDERATED_CLUSTERS)).items:
        if (name := cluster["metadata"]["name"]) not in steps.world.members:
            await steps.world.unjoin_by_force(name)  # a restored host knows members by names of the past
    steps.judge.check()  # what leaves drained clusters, which will be drained no more
    for name in steps.joined:
        await steps.untaint(name)
    await _rejoin(steps)
    await steps.world.pass_time(5)
    await steps.return_type()
    for app in APPS.values():
        if steps.judge.words[app.name].body and await steps.world.find(PROPAGATION_POLICIES, app.name) is None:
            await steps.world.create(PROPAGATION_POLICIES, policy_of(app, {"*": 1}))
    for _ in range(8):
        await steps.world.pass_time(40)
        steps.judge.check()
        approved = await steps.approve()
        did.append(approved)
        if approved == "approve []":
            break
    return did


async def _rejoin(steps: Steps) -> None:
    """Join what is out; a cluster that is another one than its FederatedCluster says leaves first, as its message asks."""
    for name in sorted(set(steps.world.members) - steps.lost_for_ever):
        cluster = cluster_of(steps.world, name)
        if cluster is not None and _is_another(cluster):
            steps.judge.keeps(steps.world.members[name], "unjoin by force")
            await steps.world.unjoin_by_force(name)
            await steps.world.pass_time(5)
        if cluster_of(steps.world, name) is None:
            await steps.world.join(name)


def _is_another(cluster: Object) -> bool:
    reasons = {each.get("reason") for each in (cluster.get("status") or {}).get("conditions") or ()}
    return bool(reasons & {names.REASON_IDENTITY_MISMATCH, "ClusterUnjoinable"})
