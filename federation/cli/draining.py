"""The command `fedctl drain`: add the drain taint, and follow the replicas until nothing more can leave.

The control plane moves them, make before break, and records in annotation `names.EVICTION` of each federated object why
replicas stay (docs/reference/failover.md). This module writes nothing but the taint.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from federation.api import names
from federation.api.federatedtype import FederatedType, from_config
from federation.api.resources import (
    CLUSTER_DISRUPTION_BUDGETS,
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_ROLLOUTS,
    FEDERATED_TYPE_CONFIGS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, Object
from federation.cli.plan.command import make_planner
from federation.cli.tainting import change_taints
from federation.client.client import Client
from federation.planning.clusters.taintedits import drained
from federation.planning.failover.clusterbudgets import budgeted_clusters, disruptions_of, find_blocked
from federation.planning.failover.evictionrecord import StayReason, eviction_record
from federation.planning.failover.halts import halt_of
from federation.planning.failover.tolerance import tolerance_of
from federation.planning.federatedobject.placements import current_clusters, departed_clusters, placement_of
from federation.plans.inventory import read_inventory
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy, compile_valid
from federation.scheduling.whatif.planresult import ObjectPlan
from federation.scheduling.whatif.state import ObjectChange
from federation.terminal import candidates, flags
from federation.terminal.execution import execute
from federation.terminal.kubeconfigcontext import KubeconfigContext

_POLL_S = 0.5
_STILL_S = 10.0
"""After this time without progress the objects that have not left are named."""
_SHOWN_MAX = 20
_NO_ROOM = "other clusters have no room"
_EXPECTED = frozenset((StayReason.KEPT, StayReason.NEVER, StayReason.STATE))
"""Reasons for which replicas stay by design; a drain that ends with them is complete."""
Cluster = Annotated[
    str, typer.Argument(metavar="CLUSTER", autocompletion=candidates.clusters, help="Name of the member.")
]


def _seconds(given: str | float) -> float:
    """Return a duration in seconds; a number without a unit is seconds. The default passes through here, too."""
    text = str(given)
    try:
        seconds = float(text) if text.replace(".", "", 1).isdigit() else parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if seconds < 0:
        raise typer.BadParameter(f"{text!r} is negative")
    return seconds


def drain_command(
    name: Cluster,
    timeout: Annotated[
        float,
        typer.Option("--timeout", parser=_seconds, metavar="DURATION", help="How long to wait, such as 90s."),
    ] = 600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would leave and what would stay.")] = False,
    kubeconfig: flags.Kubeconfig = None,
    context: flags.Context = "",
) -> None:
    """Move the workloads of a member to other members.

    New replicas run elsewhere before the present ones end. Workloads with state, volumes, CustomResourceDefinitions and
    namespaces stay. Ends when nothing more can leave, and lists what stays and why; exits with 1 if that is for lack of
    room, a budget or time. `fedctl uncordon` undoes it.
    """
    target = KubeconfigContext(kubeconfig, context)
    execute(preview(target, name) if dry_run else drain(target, name, timeout_s=timeout))


@dataclass(frozen=True, slots=True)
class Item:
    """An object that is in the cluster: its name, what it has there, and why it stays, "" while it may leave."""

    name: str
    replicas: int
    stay: str = ""
    is_expected: bool = True

    def to_text(self, text: str) -> str:
        """Return a line about the object; one without replicas, such as a Service, is named alone."""
        return f"{self.name}: {to_count(self.replicas, 'replica')} {text}" if self.replicas else f"{self.name}: {text}"


async def drain(context: KubeconfigContext, name: str, *, timeout_s: float) -> int:
    """Drain a member and print the progress; return 1 if something stays that should have left."""
    await change_taints(context, name, drained)
    print(f'cluster "{name}" is being drained; to undo it: fedctl uncordon {name}')
    async with context.client() as host:
        types = await _types(host)
        clock, last = SystemClock(), ""
        changed_s = clock.monotonic()
        deadline_s, is_named = changed_s + timeout_s, False
        while True:
            cluster = await host.get(FEDERATED_CLUSTERS, name)
            items = await items_in(host, name, types)
            moving = [item for item in items if not item.stay]
            text = _progress(moving, halt_of(cluster))
            if text != last:
                print(text)
                last, changed_s, is_named = text, clock.monotonic(), False
            elif not is_named and clock.monotonic() - changed_s >= _STILL_S:
                is_named = True
                for line in _shown([item.to_text("not gone yet") for item in moving]):
                    print(f"  {line}")
            if not moving or clock.monotonic() >= deadline_s:
                break
            await asyncio.sleep(_POLL_S)
    late = [Item(item.name, item.replicas, f"did not leave within {timeout_s:g} s") for item in moving]
    for line in _shown(
        [
            item.to_text(f"{'stay' if item.replicas > 1 else 'stays'}: {item.stay}")
            for item in (*filter(_stays, items), *late)
        ]
    ):
        print(line)
    has_failed = bool(late) or any(not item.is_expected for item in items)
    print(f'cluster "{name}" ' + ("is not empty" if has_failed else "is drained"))
    return 1 if has_failed else 0


async def preview(context: KubeconfigContext, name: str) -> int:
    """Print what would leave a member and what would stay; return 1 if something has no room or a budget forbids it."""
    async with make_planner(context) as planner:
        host, world = planner.host, await read_inventory(planner.host)
        cluster = await host.get(FEDERATED_CLUSTERS, name)  # NotFound for a wrong name
        taints = list(drained((cluster.get("spec") or {}).get("taints"), SystemClock().now()))
        after = {**cluster, "spec": {**(cluster.get("spec") or {}), "taints": taints}}
        forecast = await planner.plan(world, [ObjectChange(FEDERATED_CLUSTERS, "", name, cluster, after)])
        budgets = (await host.list(CLUSTER_DISRUPTION_BUDGETS)).items
        disruptions = list(map(disruptions_of, (await host.list(FEDERATED_ROLLOUTS)).items))
        types, policies, claims = await _types(host), await _policies(host), await _claims(host)
    plans = {(plan.namespace, plan.federated_name): plan for plan in forecast.objects}
    lacking = objects = 0
    for federated in world.federated():
        type_, policy = _type_of(federated, types), policies.policy_of(federated)
        if type_ is None or policy is None or name not in placement_of(federated, names.GLOBAL_SCHEDULER):
            continue
        item, why = _item(federated, type_, name), _obstacle(federated, policy, claims)
        metadata = federated["metadata"]
        staying, reason = _forecast(plans.get((metadata.get("namespace", ""), metadata["name"])), name, item.replicas)
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
    if lacking:
        print(f"other clusters have no room for {to_count(lacking, 'replica')} of {to_count(objects, 'object')}")
    else:
        print("everything that may leave fits into other clusters")
    views = budgeted_clusters(world.list(FEDERATED_CLUSTERS), disruptions)
    blocked = find_blocked(name, views, budgets, SystemClock().now())
    if blocked is not None:
        print(blocked.message)
    return 1 if blocked is not None or lacking else 0


def _forecast(plan: ObjectPlan | None, cluster: str, replicas: int) -> tuple[int, str]:
    """Return how many replicas of an object would stay in the drained cluster, and why, "" if none."""
    row = next((row for row in plan.rows if row.cluster == cluster), None) if plan is not None else None
    if plan is not None and plan.is_stuck:
        return replicas, _NO_ROOM
    if plan is None or row is None or not row.is_changed:
        return replicas, "its policy tolerates the drain"
    lacking = max(0, plan.unplaced - plan.unplaced_before) + plan.waiting
    return min(replicas, lacking), _NO_ROOM if lacking else ""


def _obstacle(federated: Object, policy: Policy, claims: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """Return why an object would stay, "" if it may leave."""
    namespace = federated["metadata"].get("namespace", "")
    template = federated["spec"]["template"]
    tolerance = tolerance_of(template, policy.failover, lambda claim: claims.get((namespace, claim)))
    if policy.is_sticky:
        return "its policy keeps it where it is"
    return "" if tolerance.may_leave else tolerance.state or "its policy says failover.mode: Never"


async def items_in(host: Client, cluster: str, types: Sequence[FederatedType] | None = None) -> list[Item]:
    """Return what the scheduler has placed in the cluster, and what is still being removed there."""
    types, found = await _types(host) if types is None else types, []
    for federated in await _federated(host):
        type_ = _type_of(federated, types)
        is_placed = cluster in placement_of(federated, names.GLOBAL_SCHEDULER)
        if type_ is not None and (is_placed or cluster in departed_clusters(federated)):
            found.append(_item(federated, type_, cluster))
    return found


def _item(federated: Object, type_: FederatedType, cluster: str) -> Item:
    template = federated["spec"]["template"]
    where = "/".join(filter(None, (federated["metadata"].get("namespace"), template["metadata"]["name"])))
    replicas = current_clusters(federated, type_).get(cluster, 0)
    if replicas is None:
        replicas = type_.replicas(template) or 0
    name, stay = f"{template['kind']} {where}", eviction_record(federated).stays.get(cluster)
    if stay is not None:
        return Item(name, replicas, stay.message, is_expected=stay.reason in _EXPECTED)
    scheduled = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
    if scheduled.get("status") == "False" and cluster in placement_of(federated, names.GLOBAL_SCHEDULER):
        # Without a decision it keeps its placement, whatever happens to the cluster.
        return Item(name, replicas, str(scheduled.get("message") or scheduled.get("reason")), is_expected=False)
    return Item(name, replicas)


def _stays(item: Item) -> bool:
    return bool(item.stay)


def _progress(moving: Sequence[Item], halt: str) -> str:
    replicas = sum(item.replicas for item in moving)
    if not moving:
        return "nothing more leaves"
    left = f"; {to_count(replicas, 'replica')} left" if replicas else ""
    return f"{to_count(len(moving), 'object')} to leave{left}" + (f"; waiting: {halt}" if halt else "")


def _shown(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _SHOWN_MAX
    return [*lines[:_SHOWN_MAX], *([f"and {more} more"] if more > 0 else [])]


async def _federated(host: Client) -> list[Object]:
    return [each for kind in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS) for each in (await host.list(kind)).items]


async def _types(host: Client) -> list[FederatedType]:
    return list(map(from_config, (await host.list(FEDERATED_TYPE_CONFIGS)).items))


def _type_of(federated: Object, types: Iterable[FederatedType]) -> FederatedType | None:
    template = federated["spec"]["template"]
    key = (template.get("apiVersion"), template.get("kind"))
    return next((type_ for type_ in types if (type_.resource.api_version, type_.resource.kind) == key), None)


async def _policies(host: Client) -> PolicyIndex:
    found = PolicyIndex()
    for kind in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES):
        for policy in compile_valid((await host.list(kind)).items):
            found.put(policy)
    return found


async def _claims(host: Client) -> dict[tuple[str, str], Sequence[str]]:
    """Return the access modes of the claims of the host by namespace and name."""
    claims = (await host.list(PERSISTENT_VOLUME_CLAIMS)).items
    return {
        (claim["metadata"]["namespace"], claim["metadata"]["name"]): (claim.get("spec") or {}).get("accessModes") or ()
        for claim in claims
    }
