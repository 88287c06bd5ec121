"""The live map of federated types: which kinds are federated now, and how.

It follows the FederatedTypeConfigs of the host through an informer and an injected `parse` function, and notifies
listeners of types that are added, changed and removed. One type per group and kind, in whatever version an object or a
reference names it: of several configurations the one whose name sorts first is in force, and the next one replaces it
when it is deleted. Lives as long as the control plane.
"""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from federation.api.federatedtype import FederatedType, template_problem
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import GroupKind, Object, Resource, group_kind_of
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers
from federation.runtime.replay import replay

_log = structlog.get_logger(__name__)

Listener = Callable[[FederatedType], None]


class FederatedTypes:
    """The federated types in force. `parse` turns a FederatedTypeConfig into a type; ValueError when it is unusable."""

    def __init__(self, informers: Informers, parse: Callable[[Object], FederatedType]) -> None:
        self.informer: Informer = informers.for_resource(FEDERATED_TYPE_CONFIGS)
        self._parse = parse
        self._parsed: dict[str, FederatedType] = {}
        self._in_force: dict[GroupKind, FederatedType] = {}
        self._listeners: list[tuple[Listener, Listener]] = []
        self._invalid: dict[str, str] = {}
        self._last: tuple[Object, FederatedType | None] = ({}, None)
        """The template that was read last, and its type: two dozen handlers ask for the same one."""
        self.informer.add_handler(self._handle)

    @property
    def has_synced(self) -> bool:
        """Every type that exists is known."""
        return self.informer.has_synced

    async def wait_synced(self) -> None:
        """Return once every type that exists is known."""
        await self.informer.wait_synced()

    def for_federated(self, federated: Mapping[str, Any]) -> FederatedType | None:
        """Return the type of a federated object's template; None if not federated or the template is malformed."""
        template = (federated.get("spec") or {}).get("template") or {}
        known, type_ = self._last
        if template is not known:
            type_ = None if template_problem(federated) else self.for_object(template)
            self._last = template, type_
        return type_

    def for_object(self, obj: Object) -> FederatedType | None:
        """Return the type of an object, in whatever version it is."""
        return self._in_force.get(group_kind_of(obj))

    def for_resource(self, resource: Resource) -> FederatedType | None:
        """Return the type of the resource, in whatever version it is."""
        return self._in_force.get(resource.group_kind)

    def for_group_kind(self, group: str, kind: str) -> FederatedType | None:
        """Return the type of the kind."""
        return self._in_force.get(GroupKind(group, kind))

    def by_name(self, name: str) -> FederatedType | None:
        """Return the type in force whose configuration has the name."""
        return next((type_ for type_ in self._in_force.values() if type_.name == name), None)

    def all(self) -> list[FederatedType]:
        """Return the types in force."""
        return list(self._in_force.values())

    @property
    def ignored(self) -> dict[str, str]:
        """The configurations that are not in force, with the reason."""
        names = {type_.name for type_ in self._in_force.values()}
        shadowed = {
            name: f"{type_.resource.group_resource} is federated by {in_force.name} already"
            for name, type_ in self._parsed.items()
            if name not in names and (in_force := self._in_force.get(type_.resource.group_kind)) is not None
        }
        return shadowed | self._invalid

    def add_listener(self, on_add: Listener, on_remove: Listener) -> Callable[[], None]:
        """Call `on_add` for every type in force and each later one, `on_remove` for removed types.

        A changed type is removed and added. Returns a function that ends it.
        """
        pair = (on_add, on_remove)
        self._listeners.append(pair)
        with replay():
            for type_ in self.all():
                on_add(type_)
        return lambda: self._listeners.remove(pair) if pair in self._listeners else None

    def _handle(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        before = self._parsed.pop(name, None)
        self._invalid.pop(name, None)
        after: FederatedType | None = None
        if new is not None:
            try:
                after = self._parsed[name] = self._parse(new)
            except (ValueError, KeyError, TypeError) as problem:
                self._invalid[name] = str(problem)
                _log.info("federated type ignored", name=name, error=str(problem))
        for kind in {type_.resource.group_kind for type_ in (before, after) if type_ is not None}:
            self._choose(kind)

    def _choose(self, kind: GroupKind) -> None:
        """Choose the configuration in force for the kind, and notify the listeners when it changes."""
        candidates = [type_ for type_ in self._parsed.values() if type_.resource.group_kind == kind]
        current, wanted = self._in_force.get(kind), min(candidates, key=lambda type_: type_.name, default=None)
        if current == wanted:
            return
        if current is not None:
            del self._in_force[kind]
            self._last = {}, None
            for _, on_remove in list(self._listeners):
                on_remove(current)
        if wanted is not None:
            self._in_force[kind] = wanted
            self._last = {}, None
            for on_add, _ in list(self._listeners):
                on_add(wanted)
