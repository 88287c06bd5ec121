"""Plans of changes: computed from the present objects, applied while they are still valid, and compared with reality.

`fedctl plan` and the web UI use them with the rights of their user. The computation itself is in `scheduling/whatif`.

Decision: docs/decisions/0013-plans-run-the-controllers-planners.md
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ConfigurationError, ServiceUnavailable, TooManyRequests
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.usedtime import in_thread
from federation.client.client import Client
from federation.planning.failover.application import handed_states
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.guard.record import held_moves
from federation.plans.edits import Edit, apply_edit, created_namespaces, dry_run, get_or_none
from federation.plans.inventory import read_inventory
from federation.plans.planfile import ExpectedObject, Getter, PlanFile, describe, differences, fingerprint, to_plan_file
from federation.plans.plugincalls import Perform, PluginCaller, drive
from federation.plans.requestedchanges import RequestedChanges, ResolvedChanges, resolve_changes
from federation.scheduling.chain import Chain
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.hostlimits import Limits
from federation.scheduling.whatif.compute import compute
from federation.scheduling.whatif.forecasts import Forecasting, with_forecasts
from federation.scheduling.whatif.holdingtext import describe_holding
from federation.scheduling.whatif.planresult import Plan
from federation.scheduling.whatif.rendered import member_objects_of
from federation.scheduling.whatif.state import ObjectChange, ObjectSet, federated_types

_TURN_S = 30.0
"""How long a plan of a server waits for others."""
_PLANS_MAX = 8
"""Plans of all users that are in progress: each holds all federated objects in memory."""
_OTHERS: Final = "other plans are being computed; try again in a minute"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Planner:
    """Computes plans; `caller` sends requests to remote plugins, None when there are none."""

    host: Client
    plugins: PluginRegistry
    chain: Chain
    caller: PluginCaller | None
    clock: Clock
    perform: Perform | None = None
    """Computes in another thread, for example; here if it is None."""
    limits: Limits = field(default_factory=Limits)
    """The host's limits of moves, whose holds and halts a plan foresees."""
    forecasts: Sequence[Forecasting] = ()
    """Forecasts of features that know the changed kinds."""

    async def forecast(self, requested: RequestedChanges) -> "Forecast":
        """Return what the requested changes would do now; ConfigurationError names the one that is wrong."""
        world = await read_inventory(self.host, self.chain)
        resolved = await resolve_changes(self.host, world, requested)
        result = await self.plan(world, resolved.changes)
        saved = to_plan_file(result, world, resolved.edits, resolved.changes, resolved.hypothetical)
        return Forecast(result, resolved, fingerprint(saved))

    async def plan(self, world: ObjectSet, changes: Sequence[ObjectChange], *, is_explained: bool = False) -> Plan:
        """Return the result of the changes."""
        now = self.clock.now()
        follows, texts = with_forecasts(changes, world, self.forecasts, now)
        texts += [text for change in changes if (text := describe_holding(change, world, now))]
        run = compute(
            world,
            changes,
            self.plugins,
            self.chain,
            now=now,
            is_explained=is_explained,
            limits=self.limits,
            follows=follows,
        )
        result, _ = await drive(run, self.caller, self.perform)
        return replace(result, problems=[*texts, *result.problems]) if texts else result


@dataclass(frozen=True, slots=True)
class Forecast:
    """The result of requested changes; the fingerprint differs when it was computed from something else."""

    plan: Plan
    resolved: ResolvedChanges
    fingerprint: str


class Planners:
    """Makes planners for the users of a server. Each user makes one plan at a time.

    One plan at a time is computed, in a thread, and others wait for it. Nobody waits while another user's plan reads or
    writes objects: the server may let that user rest for what he used.
    """

    def __init__(
        self,
        plugins: PluginRegistry,
        chain: Chain,
        caller: PluginCaller | None,
        clock: Clock,
        limits: Limits | None = None,
        forecasts: Sequence[Forecasting] = (),
    ) -> None:
        self._forecasts = forecasts
        self._plugins = plugins
        self._chain = chain
        self._caller = caller
        self._clock = clock
        self.limits = limits or Limits()
        self._turn = asyncio.Lock()
        self._users: set[str] = set()

    @asynccontextmanager
    async def of(self, host: Client, user: str) -> AsyncIterator[Planner]:
        """Yield a planner with the rights of the client, which are those of the user.

        TooManyRequests if the user has another one; ServiceUnavailable if others take too long.
        """
        if user in self._users:
            raise TooManyRequests(
                "you have another plan in progress; try again when it is done", details={"retryAfterSeconds": 5}
            )
        if len(self._users) >= _PLANS_MAX:
            raise ServiceUnavailable(_OTHERS)
        self._users.add(user)
        try:
            yield Planner(
                host,
                self._plugins,
                self._chain,
                self._caller,
                self._clock,
                self._compute,
                self.limits,
                self._forecasts,
            )
        finally:
            self._users.discard(user)

    async def _compute(self, work: Callable[[], T]) -> T:
        try:
            await asyncio.wait_for(self._turn.acquire(), _TURN_S)
        except TimeoutError as error:
            raise ServiceUnavailable(_OTHERS) from error
        try:
            return await in_thread(work)
        finally:
            self._turn.release()


async def check_and_apply(planner: Planner, saved: PlanFile) -> list[str]:
    """Apply a plan if it is still valid; return one line per difference, [] when it was applied.

    ConfigurationError when it is hypothetical, or when the server rejects a write after earlier ones were made.
    """
    reject_hypothetical(saved)
    world = await read_inventory(planner.host, planner.chain)
    created = created_namespaces(saved.edits)
    changes = [await dry_run(planner.host, edit, created) for edit in saved.edits]
    result = await planner.plan(world, changes)
    now = to_plan_file(result, world, saved.edits, changes, ())
    return await apply_if_valid(planner.host, saved, now, [change.before for change in changes], world.get)


def reject_hypothetical(saved: PlanFile) -> None:
    """Raise ConfigurationError for a plan of changes that nobody can make."""
    if saved.hypothetical:
        raise ConfigurationError(f"this plan cannot be applied: {', '.join(saved.hypothetical)} is hypothetical")


async def apply_if_valid(
    host: Client, saved: PlanFile, now: PlanFile, befores: Sequence[Object | None], get: Getter | None = None
) -> list[str]:
    """Make the writes if `now`, the plan that was computed again, is the saved one; return the differences.

    `befores` are the present objects of the writes.
    """
    edited = {(e.resource, e.namespace, e.name): before for e, before in zip(saved.edits, befores, strict=True)}

    def find(resource: Resource, namespace: str, name: str) -> Mapping[str, Any] | None:
        key = (resource, namespace, name)
        return edited[key] if key in edited or get is None else get(*key)

    if lines := differences(saved, now, None if get is None else find):
        return [*lines, "nothing was applied; make the plan again"]
    await apply_edits(host, saved.edits, befores)
    return []


async def apply_edits(host: Client, edits: Sequence[Edit], befores: Sequence[Object | None]) -> None:
    """Make the writes, each for the version of its object that the change was computed from; None if it had none.

    ConfigurationError names the write that the server rejects, and those that were made before it.
    """
    done: list[str] = []
    for edit, before in zip(edits, befores, strict=True):
        try:
            await apply_edit(host, edit, before)
        except ApiError as error:
            applied = f"applied before it: {', '.join(done)}" if done else "nothing was applied"
            raise ConfigurationError(f"{edit}: {error.message}; {applied}") from error
        done.append(str(edit))


class Unmet(NamedTuple):
    """An object whose state differs from the expected one; `is_held` if it waits for an approval of the guard."""

    text: str
    is_held: bool = False
    reason: str = ""
    """Why the scheduler keeps it where it is."""


async def unmet_expectations(host: Client, expected: Sequence[ExpectedObject]) -> list[Unmet]:
    """Return the objects whose state differs from the expected one."""
    configs = ObjectSet({FEDERATED_TYPE_CONFIGS: (await host.list(FEDERATED_TYPE_CONFIGS)).items})
    types = federated_types(configs, [])
    unmet = []
    for wanted in expected:
        type_ = types[wanted.resource.group_kind]
        found = await get_or_none(host, type_.federated_resource, wanted.namespace, wanted.federated_name)
        if found is None:
            if wanted.clusters:
                unmet.append(Unmet(f"{wanted}: does not exist yet"))
            continue
        if not _is_processed(found) and wanted.clusters:
            unmet.append(Unmet(f"{wanted}: still being processed by controllers"))
            continue
        clusters = _copies(found, type_, wanted)
        if clusters != wanted.clusters:
            holds = sorted({held.hold for held in held_moves(found)})
            if holds:
                approve = " and ".join(f"fedctl approve {hold} --reason TEXT" for hold in holds)
                unmet.append(Unmet(f"{wanted}: held by the guard; to let it go on: {approve}", is_held=True))
            else:
                reason = _reason_to_stay(found)
                text = f"{wanted}: {describe(wanted.clusters, clusters)}" + (f"; {reason}" if reason else "")
                unmet.append(Unmet(text, reason=reason))
    return unmet


def _reason_to_stay(found: Mapping[str, Any]) -> str:
    stated = conditions.find((found.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
    return str(stated.get("message") or "") if stated.get("status") == "False" else ""


def _copies(
    found: Mapping[str, Any], type_: FederatedType, wanted: ExpectedObject
) -> dict[str, tuple[int | None, str]]:
    """Return replicas and digest of each copy.

    A plan does not know the state that a copy gets from one that leaves: with the rest as planned, it is as planned.
    """
    clusters = {name: (copy.replicas, copy.digest) for name, copy in member_objects_of(found, type_).items()}
    if not handed_states(found):
        return clusters
    metadata = found["metadata"]
    annotations = {key: value for key, value in metadata["annotations"].items() if key != names.HANDED_STATE}
    plain = member_objects_of({**found, "metadata": {**metadata, "annotations": annotations}}, type_)
    without = {name: (copy.replicas, copy.digest) for name, copy in plain.items()}
    return {
        name: without[name] if without[name] == wanted.clusters.get(name) else each for name, each in clusters.items()
    }


def _is_processed(found: dict[str, object]) -> bool:
    """Return True when every controller has finished with the federated object, so that sync may dispatch it."""
    try:
        return pendingcontrollers.may_dispatch(pendingcontrollers.pending_stages(found))
    except pendingcontrollers.PipelineError:
        return False
