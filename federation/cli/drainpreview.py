"""`fedctl drain --dry-run`: what would leave a member and what would stay, computed by a plan of the drain."""

from federation.api import names
from federation.api.resources import (
    CLUSTER_DISRUPTION_BUDGETS,
    FEDERATED_CLUSTERS,
    FEDERATED_ROLLOUTS,
)
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.cli.drainitems import BY_DESIGN, item_of, read_types, type_of
from federation.cli.hostfacts import read_policies
from federation.cli.plan.command import make_planner
from federation.planning.clusters.taintedits import drained
from federation.planning.failover.clusterbudgets import budgeted_clusters, disruptions_of, find_blocked
from federation.planning.failover.evictionrecord import StayReason
from federation.planning.federatedobject.placements import placement_of
from federation.plans.inventory import read_inventory
from federation.scheduling.whatif.planresult import ObjectPlan
from federation.scheduling.whatif.state import ObjectChange
from federation.terminal.kubeconfigcontext import KubeconfigContext

_NO_ROOM = "other clusters have no room"
_TOLERATES = "its policy tolerates the drain"


async def preview(context: KubeconfigContext, name: str) -> int:
    """Print what would leave a member and what would stay; return 1 if a workload would stay."""
    async with make_planner(context) as planner:
        host, world = planner.host, await read_inventory(planner.host, planner.chain)
        cluster = await host.get(FEDERATED_CLUSTERS, name)  # NotFound for a wrong name
        taints = list(drained((cluster.get("spec") or {}).get("taints"), SystemClock().now()))
        after = {**cluster, "spec": {**(cluster.get("spec") or {}), "taints": taints}}
        forecast = await planner.plan(world, [ObjectChange(FEDERATED_CLUSTERS, "", name, cluster, after)])
        disruptions = list(map(disruptions_of, (await host.list(FEDERATED_ROLLOUTS)).items))
        types, policies = await read_types(host), await read_policies(host)
    plans = {(plan.namespace, plan.federated_name): plan for plan in forecast.objects}
    lacking = objects = held = kept = 0
    for federated in world.federated():
        type_, policy = type_of(federated, types), policies.policy_of(federated)
        if type_ is None or policy is None or name not in placement_of(federated, names.GLOBAL_SCHEDULER):
            continue
        item, metadata = item_of(federated, type_, name), federated["metadata"]
        plan = plans.get((metadata.get("namespace", ""), metadata["name"]))
        staying, reason = _forecast(plan, name, item.replicas)
        why = "its policy keeps it where it is" if policy.rescheduling.is_sticky else _design(plan, name)
        if why or (reason and staying == item.replicas):
            print(item.to_text(f"would stay: {why or reason}"))
        elif staying:
            print(
                f"{item.name}: {item.replicas - staying} of {to_count(item.replicas, 'replica')} would leave: {reason}"
            )
        else:
            print(item.to_text("would leave"))
        if not why and reason == _NO_ROOM:
            lacking, objects = lacking + staying, objects + 1
        kept += bool(why) and item.has_pods
        held += not why and bool(reason) and reason not in (_NO_ROOM, _TOLERATES)
    if lacking:
        print(f"other clusters have no room for {to_count(lacking, 'replica')} of {to_count(objects, 'object')}")
    elif held:
        print(f"{to_count(held, 'object')} would stay until the reason ends; the others fit into other clusters")
    else:
        print("everything that may leave fits into other clusters")
    if kept:
        print(f"the cluster would not be drained: {to_count(kept, 'workload')} would stay in it by design")
    now = SystemClock().now()
    views = budgeted_clusters(world.list(FEDERATED_CLUSTERS), disruptions, now)
    blocked = find_blocked(name, views, world.list(CLUSTER_DISRUPTION_BUDGETS), now)
    if blocked is not None and not held:  # what is held has the message already
        print(blocked.message)
    return 1 if blocked is not None or lacking or held or kept else 0


def _forecast(plan: ObjectPlan | None, cluster: str, replicas: int) -> tuple[int, str]:
    """Return how many replicas of an object would stay in the drained cluster, and why, "" if none."""
    row = next((row for row in plan.rows if row.cluster == cluster), None) if plan is not None else None
    if plan is not None and plan.is_stuck:
        return replicas, plan.waits or _NO_ROOM
    if plan is not None and (stay := plan.stays.get(cluster)) is not None:
        left = row.after.replicas if row is not None and row.after is not None else None
        return replicas if left is None else left, _NO_ROOM if stay.reason is StayReason.NO_ROOM else stay.message
    if plan is None or row is None or not row.is_changed:
        return replicas, _TOLERATES
    if row.held:
        return replicas, row.held
    lacking = max(0, plan.unplaced - plan.unplaced_before) + plan.waiting
    return min(replicas, lacking), _NO_ROOM if lacking else ""


def _design(plan: ObjectPlan | None, cluster: str) -> str:
    """Return why an object stays by design, "" if it may leave."""
    stay = plan.stays.get(cluster) if plan is not None else None
    return stay.message if stay is not None and stay.reason in BY_DESIGN else ""
