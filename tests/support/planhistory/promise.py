"""Compares a plan with what happens when its change is made."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from federation.admission.deviceselectors import selects
from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, FEDERATED_RESOURCE_QUOTAS
from federation.apimachinery import conditions
from federation.apimachinery.errors import ApiError, ConfigurationError
from federation.apimachinery.quantity import parse
from federation.apimachinery.resources import DEPLOYMENTS
from federation.features.catalogue import decision_chain, feature_forecasts
from federation.plans.edits import Edit, apply_edit, get_or_none
from federation.plans.inventory import read_inventory
from federation.plans.planner import Planner
from federation.plans.requestedchanges import resolve_changes, to_edits
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.hostlimits import Limits
from federation.scheduling.whatif.planresult import ObjectPlan, Plan
from federation.settings import Settings
from tests.support.planhistory.changes import CPU_MILLIS, Change
from tests.support.world import World

_MINUTES_S = 60
"""Longer than rollouts, the pace of failover and reports of resources take; all tolerations are longer."""
_TOLERATION_S = 330
_STABLE_S = 330
"""Longer than a cluster has to be stable before replicas return to it."""

_UNTIL = "replicas stay until"
"""What a plan says of replicas of which some may leave: how many depends on what runs meanwhile."""
_MOVE = "it would leave clusters"
"""The part of the message of a freeze that says that it holds a decision's move, and not only the update of a copy."""
_UNDECIDED = ("FederatedResourceQuota", _MOVE, "return when it has been stable")
"""Parts of the reasons of what is decided later, and charged then."""
Copies = dict[tuple[str, str], tuple[int, str]]
"""Deployment and member, with the replicas and the image there."""


class Promise:
    """One change of a world: its plan, and what happens."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def check(self, change: Change) -> list[str]:
        """Plan a change, make it, and return how reality differs from the plan."""
        world = self._world
        before, waited = await copies(world), await waiting(world)
        inventory = await read_inventory(world.user, decision_chain())
        edits = await to_edits(world.user, inventory, change.requested)
        try:
            resolved = await resolve_changes(world.user, inventory, change.requested)
        except ConfigurationError as refusal:
            return [] if await self._is_refused(edits) else [f"refusal: only the plan is refused: {refusal}"]
        settings = Settings(Path("unused"), **world._settings)
        limits = Limits(settings.guard, settings.failover)
        planner = Planner(
            world.user,
            load_plugins(selects=selects),
            decision_chain(),
            None,
            world.clock,
            limits=limits,
            forecasts=feature_forecasts(),
        )
        plan = await planner.plan(inventory, resolved.changes)
        if await self._is_refused(resolved.edits):
            return ["refusal: the change is refused, its plan is not"]
        if change.lost:
            await world.lose(change.lost)
        await self._rest(_MINUTES_S)
        findings = await self._compare(plan, before, waited)
        if change.lost and not findings:
            await self._rest(_TOLERATION_S)
            await world.bring_back(change.lost)
            await self._rest(_STABLE_S)
        return findings

    async def _rest(self, seconds: float) -> None:
        """Let time pass until nothing has changed for a minute: replicas return in batches."""
        before = None
        await self._world.settle()
        while (found := await copies(self._world)) != before:
            before = found
            await self._world.pass_time(seconds)
            await self._world.settle()
            seconds = _MINUTES_S + 1

    async def _is_refused(self, edits: Sequence[Edit]) -> bool:
        host = self._world.user
        for edit in edits:
            try:
                await apply_edit(host, edit, await get_or_none(host, edit.resource, edit.namespace, edit.name))
            except ApiError:
                return True
        return False

    async def _compare(self, plan: Plan, before: Copies, waited: Mapping[str, str]) -> list[str]:
        found, expected = await copies(self._world), promised(before, plan)
        vague = {(obj.name, row.cluster) for obj in plan.changed for row in obj.rows if row.held.startswith(_UNTIL)}
        expected |= {key: found[key] for key in vague & found.keys()}
        findings = []
        for key in sorted(found.keys() | expected.keys()):
            if found.get(key) != expected.get(key) and key not in vague:
                findings.append(f"copy: {key}: plan {expected.get(key)}, found {found.get(key)}")
        waits_now, planned = await waiting(self._world), dict(waited)
        for obj in plan.objects:
            if obj.resource == DEPLOYMENTS:
                planned[obj.name] = _wait_of(obj)
        for name, message in waits_now.items():
            if bool(message) != bool(planned.get(name)):
                findings.append(f"waits: {name}: plan {planned.get(name)!r}, found {message!r}")
        for quota in (await self._world.user.list(FEDERATED_RESOURCE_QUOTAS)).items:
            charged = parse(str(((quota.get("status") or {}).get("overallUsed") or {}).get("cpu", "0")))
            due = _charged(expected, plan) * CPU_MILLIS
            if charged.nanos != due * 1_000_000:
                findings.append(f"charge: plan {due}m, found {charged}")
        if findings:
            findings += [f"plan: {_told(obj)}" for obj in plan.objects] + [f"hold: {hold}" for hold in plan.holds]
            findings += [f"problem: {text}" for text in plan.problems]
            findings += [f"now: {name} waits: {message}" for name, message in waits_now.items() if message]
        return findings


async def copies(world: World) -> Copies:
    """Return the Deployments in the members."""
    found: Copies = {}
    for member in world.members.values():
        for copy in (await member.admin.list(DEPLOYMENTS, "default")).items:
            image = copy["spec"]["template"]["spec"]["containers"][0]["image"]
            found[copy["metadata"]["name"], member.name] = (copy["spec"]["replicas"], image)
    return found


async def waiting(world: World) -> dict[str, str]:
    """Return why Deployments wait for a decision, "" for those that do not."""
    found = {}
    for each in (await world.user.list(FEDERATED_OBJECTS)).items:
        scheduled = conditions.find((each.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
        name = each["spec"]["template"]["metadata"]["name"]
        found[name] = str(scheduled.get("message") or "?") if scheduled.get("status") == "False" else ""
    return found


def promised(before: Copies, plan: Plan) -> Copies:
    """Return the copies that a plan promises: what is held stays."""
    after = dict(before)
    for obj in plan.changed:
        for row in obj.rows if obj.resource == DEPLOYMENTS else ():
            if row.held and row.meanwhile is not None and (obj.name, row.cluster) in before:
                after[obj.name, row.cluster] = (row.meanwhile, before[obj.name, row.cluster][1])
            if row.held or row.note.startswith("not ready"):
                continue
            after.pop((obj.name, row.cluster), None)
            if row.after is not None:
                image = row.after.manifest["spec"]["template"]["spec"]["containers"][0]["image"]
                after[obj.name, row.cluster] = (row.after.replicas or 0, image)
    return after


def _told(obj: ObjectPlan) -> str:
    rows = [
        f"{row.cluster} {row.before and row.before.replicas}→{row.after and row.after.replicas} {row.held or row.note}"
        for row in obj.rows
    ]
    why = obj.waits or obj.reason
    return f"{obj.target} {obj.action}: {rows} {obj.is_stuck=} {obj.unplaced=} {why!r} {obj.problems} {dict(obj.stays)}"


def _wait_of(obj: ObjectPlan) -> str:
    """Return what the plan has to say of an object that is not placed as it has to be."""
    held = next((row.held for row in obj.rows if row.held and not _is_delivery_only(row.held)), "")
    stays = next((stay.message for stay in obj.stays.values()), "")
    return obj.waits or held or stays or ("stuck" if obj.is_stuck or "FederatedResourceQuota" in obj.reason else "")


def _is_delivery_only(held: str) -> bool:
    """Return whether the delivery waits, and the decision does not."""
    return "DeliverySuspension" in held or (held.startswith("ChangeFreeze") and _MOVE not in held)


def _charged(expected: Copies, plan: Plan) -> int:
    """Return the replicas that run or may run: a workload that moves pays once, and for what is decided."""
    present, decided = Counter[str](), Counter[str]()
    counts = {key: replicas for key, (replicas, _) in expected.items()}
    for (name, _), replicas in counts.items():
        present[name] += replicas
    for obj in plan.changed:
        for row in obj.rows if obj.resource == DEPLOYMENTS else ():
            if not any(word in row.held for word in _UNDECIDED):
                counts[obj.name, row.cluster] = (row.after.replicas or 0) if row.after is not None else 0
    for (name, _), replicas in counts.items():
        decided[name] += replicas
    return (present | decided).total()
