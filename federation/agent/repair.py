"""Repair of drift while the host is away (docs/decisions/0060-agents-repair-drift.md).

While the tunnel is up, the agent records every minute what the host has delivered. When the host has been away for a
while, it applies what has drifted, with the account and the field manager of the control plane, so that the host finds
nothing unusual when it is back. It deletes nothing, and does not restore what was gone when it began: the host may have
deleted that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import structlog

from federation.agent.deliveredfile import DeliveredFile, Key, Kind, Record, key_of, kinds_of
from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, FederationError, NotFound
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client, PatchType
from federation.planning.drift.delivered import delivered_of, is_superseded, plan_repair
from federation.planning.drift.fields import drifted_fields

_log = structlog.get_logger(__name__)
_MANAGED = f"{names.MANAGED_LABEL}=true"
_PAGE = 500


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """Intervals and limits of the repair."""

    record_interval_s: float = 60.0
    """While the host is connected."""
    away_s: float = 60.0
    """How long the host must be away before the agent repairs."""
    repair_interval_s: float = 15.0
    """While it is away."""
    writes_max: int = 20
    """Writes of one pass; the next pass continues."""
    objects_max: int = 5_000
    """Recorded objects; about 2 KB each."""


class Repair:
    """Records and repairs one member. `away_s` says for how long the host has been away, None while it is connected."""

    def __init__(
        self,
        file: DeliveredFile,
        client: Callable[[], Awaitable[Client]],
        away_s: Callable[[], float | None],
        clock: Clock,
        options: RepairOptions | None = None,
    ) -> None:
        self._file = file
        self._client = client
        self._away_s = away_s
        self._clock = clock
        self._options = options or RepairOptions()
        self._record = Record()
        self._has_begun = False
        self._problem = ""

    async def load(self) -> None:
        """Read the record of the last time."""
        self._record = await asyncio.to_thread(self._file.load)

    def set_types(self, types: Iterable[FederatedType]) -> None:
        """Set the kinds that the host delivers; it sends them at each connection."""
        self._record.kinds = kinds_of(types)

    async def run(self) -> None:
        """Record and repair until cancelled."""
        while True:
            is_away = self._away_s() is not None
            await self._clock.sleep(self._options.repair_interval_s if is_away else self._options.record_interval_s)
            try:
                await self.step()
                self._problem = ""
            except (ApiError, ClusterError, FederationError) as error:
                if str(error) != self._problem:
                    _log.warning("cannot look for drift in the member", reason=str(error))
                self._problem = str(error)

    async def step(self) -> None:
        """Record if the host is connected, repair if it has been away for long."""
        away_s = self._away_s()
        if away_s is None:
            self._has_begun = False
            await self._record_delivered()
        elif away_s < self._options.away_s:
            # The host may have been back since the last step, and may have deleted or released objects.
            self._has_begun = False
        elif self._record.objects:
            await self._repair()

    async def _record_delivered(self) -> None:
        live, kinds = await self._list(await self._client())
        found = {key: delivered for key, obj in live.items() if (delivered := delivered_of(obj)) is not None}
        # The objects of a kind that could not be listed are kept.
        kept = {key: each for key, each in self._record.objects.items() if key.resource not in kinds}
        both, objects_max = {**kept, **found}, self._options.objects_max
        objects = dict(islice(both.items(), objects_max))
        if len(objects) < len(both) and len(self._record.objects) < objects_max:
            _log.warning("not all objects are recorded", recorded=objects_max, delivered=len(both))
        # After a disconnection in this moment, what was seen may be drift that the host has not corrected.
        if self._away_s() is None and objects != self._record.objects:
            self._record.objects = objects
            await asyncio.to_thread(self._file.store, self._record)

    async def _repair(self) -> None:
        client = await self._client()
        live, kinds = await self._list(client)
        if not self._has_begun:
            self._begin(live, kinds)
        replicas = dict(self._record.kinds)
        writes = 0
        for key in [key for key in self._record.objects if key.resource in kinds]:
            if writes >= self._options.writes_max or self._away_s() is None:
                break
            # An object that has lost our label is not listed.
            obj = live.get(key) or await _find(client, key)
            delivered = self._record.objects[key]
            if obj is not None and is_superseded(delivered, obj):
                del self._record.objects[key]  # another agent delivers
            elif (wanted := plan_repair(delivered, obj, replicas[key.resource])) is not None:
                await self._apply(client, key, wanted, obj)
                writes += 1
        if writes:
            await asyncio.to_thread(self._file.store, self._record)

    def _begin(self, live: Mapping[Key, Object], kinds: set[Resource]) -> None:
        """Take over what the host did after the last record: what it deleted, delivered and changed."""
        self._has_begun = True
        held = self._record.objects
        for key in [key for key in held if key.resource in kinds and key not in live]:
            del held[key]
        for key, obj in live.items():
            if key in held and not is_superseded(held[key], obj):
                continue
            delivered = delivered_of(obj)
            if delivered is not None and (key in held or len(held) < self._options.objects_max):
                held[key] = delivered

    async def _apply(self, client: Client, key: Key, wanted: Object, live: Object | None) -> None:
        fields = [field.name for field in drifted_fields(wanted, live)] if live is not None else ["the whole object"]
        object_ = f"{key.resource.group_resource} {key.namespace}/{key.name}".replace(" /", " ")
        try:
            answer = await client.patch(
                key.resource,
                key.name,
                wanted,
                patch_type=PatchType.APPLY,
                namespace=key.namespace,
                field_manager=names.FIELD_MANAGER,
                force=True,
            )
        except ApiError as error:
            _log.warning("cannot repair drift while the host is away", object=object_, reason=str(error))
            return
        _log.info("repaired drift while the host is away", object=object_, fields=fields)
        if (delivered := delivered_of(answer)) is not None:
            self._record.objects[key] = delivered

    async def _list(self, client: Client) -> tuple[dict[Key, Object], set[Resource]]:
        """Return the member's objects that carry our label, and the kinds that could be listed."""
        live: dict[Key, Object] = {}
        listed: set[Resource] = set()
        for resource, _ in list[Kind](self._record.kinds):
            try:
                async for obj in client.list_all(resource, label_selector=_MANAGED, limit=_PAGE):
                    # Items of a list name neither.
                    whole = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
                    live[key_of(resource, obj)] = whole
            except ApiError:
                continue  # the member does not serve the kind, or does not let the account list it
            listed.add(resource)
        return live, listed


async def _find(client: Client, key: Key) -> Object | None:
    try:
        return await client.get(key.resource, key.name, key.namespace)
    except NotFound:
        return None
