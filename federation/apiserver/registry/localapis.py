"""Registers what this server serves as APIServices, by the rules of kube-aggregator's autoregistration.

Group versions of built-in kinds are registered when the server starts (label `onstart`): an administrator may change or
delete their APIServices afterwards. Those of custom resources are kept as they should be (label `true`), and are
removed with the last definition. APIServices without the label belong to others.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson

from federation.apimachinery.errors import AlreadyExists, Conflict, NotFound
from federation.apimachinery.resources import API_SERVICES, Object
from federation.apiserver.registry.apipriorities import BUILTIN, CUSTOM
from federation.apiserver.registry.apiservices import AUTOMANAGED, APIEntry, APIServices, GroupVersion
from federation.apiserver.registry.discovery import REVIEWS
from federation.apiserver.semantics.strategies.apiservices import local_condition
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.deletes import Deleter
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions
from federation.apiserver.verbs.writes import Writer

_ON_START: Final = "onstart"
_ALWAYS: Final = "true"
_OPTIONS = WriteOptions(field_manager="federation-apiserver")


class LocalAPIs:
    """Keeps the APIServices of one registry's own group versions."""

    def __init__(self, context: VerbContext, apis: APIServices, writer: Writer, deleter: Deleter) -> None:
        self._context = context
        self._apis = apis
        self._writer = writer
        self._deleter = deleter
        self._synced: set[str] = set()
        """Names that were synchronized since the start."""
        self._at_start: frozenset[str] = frozenset()
        self._is_changed = asyncio.Event()
        context.kinds.on_change(self._is_changed.set)
        apis.on_change(self._is_changed.set)

    async def run(self) -> None:
        """Register group versions until cancelled."""
        await self._begin()
        while True:
            self._is_changed.clear()
            await self._synchronize()
            await self._is_changed.wait()

    async def settle(self) -> None:
        """Register the group versions that are served now, and return."""
        await self._begin()
        await self._synchronize()

    async def _begin(self) -> None:
        await self._apis.load()
        self._at_start = self._at_start or frozenset(self._apis.entries)

    async def _synchronize(self) -> None:
        desired = self._desired()
        names = {*desired, *(entry.name for entry in self._apis.entries.values() if entry.managed)}
        # At the start every registration causes another round, so only what is due gets a task.
        due = [name for name in sorted(names) if self._is_due(name, desired.get(name))]
        await asyncio.gather(*(self._check(name, desired.get(name)) for name in due))
        for entry in list(self._apis.entries.values()):
            if entry.service is None and not entry.is_available:
                await self._mark_available(entry.name)

    def _desired(self) -> dict[str, Object]:
        """Return the APIServices of the served group versions by name."""
        wanted: dict[GroupVersion, str] = dict.fromkeys(REVIEWS, _ON_START)
        for info in self._context.kinds.all():
            key = (info.resource.group, info.resource.version)
            wanted[key] = _ALWAYS if info.is_custom and key not in BUILTIN else _ON_START
        found = {}
        for (group, version), managed in wanted.items():
            if group == API_SERVICES.group:
                continue
            priority = BUILTIN.get((group, version), CUSTOM)
            spec = {
                "group": group,
                "version": version,
                "groupPriorityMinimum": priority.group,
                "versionPriority": priority.version,
            }
            name = f"{version}.{group}"
            found[name] = {"metadata": {"name": name, "labels": {AUTOMANAGED: managed}}, "spec": spec}
        return found

    def _is_due(self, name: str, desired: Object | None) -> bool:
        """Return whether an APIService must be compared: those that are registered at the start only once."""
        return desired is None or desired["metadata"]["labels"][AUTOMANAGED] != _ON_START or name not in self._synced

    async def _check(self, name: str, desired: Object | None) -> None:
        """Create, update or delete one APIService if that is this server's task."""
        await self._reconcile(name, desired, self._apis.entries.get(name), has_synced=name in self._synced)
        self._synced.add(name)

    async def _reconcile(self, name: str, desired: Object | None, live: APIEntry | None, *, has_synced: bool) -> None:
        info = self._context.kinds.by_kind(API_SERVICES.group, API_SERVICES.version, API_SERVICES.kind)
        try:
            if live is None:
                if desired is not None:
                    # The writer fills the object in.
                    await self._writer.create(info, "", orjson.loads(orjson.dumps(desired)), _OPTIONS)
            elif live.managed == _ALWAYS or (live.managed == _ON_START and not has_synced and name in self._at_start):
                if desired is None:
                    await self._deleter.delete(info, "", name, DeleteOptions(uid=live.uid))
                elif not _is_equal(live.spec, desired["spec"]):
                    await self._set_spec(name, desired["spec"])
        except (AlreadyExists, Conflict, NotFound):
            return  # another writer was first; the event of its write comes back here

    async def _set_spec(self, name: str, spec: Mapping[str, Any]) -> None:
        info = self._context.kinds.by_kind(API_SERVICES.group, API_SERVICES.version, API_SERVICES.kind)
        await self._writer.change(info, "", name, lambda live: ({**live, "spec": dict(spec)}, False), _OPTIONS)

    async def _mark_available(self, name: str) -> None:
        """Write the condition of a local APIService that was a remote one, or whose status somebody wrote."""

        def marked(live: Object) -> tuple[Object, bool]:
            if (live.get("spec") or {}).get("service") is not None:
                return live, False
            status = live.get("status") or {}
            found = local_condition(status.get("conditions"), self._context.clock.now())
            return {**live, "status": {**status, "conditions": found}}, False

        info = self._context.kinds.by_kind(API_SERVICES.group, API_SERVICES.version, API_SERVICES.kind)
        try:
            await self._writer.change(info, "", name, marked, _OPTIONS, subresource="status")
        except NotFound:
            return  # deleted in the meantime


def _is_equal(live: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Return True if a stored spec is the desired one; the empty group of the core API may be absent."""
    return {name: value for name, value in live.items() if value != ""} == {
        name: value for name, value in desired.items() if value != ""
    }
