"""The federated objects of a world, as far as steps of a decision read them. Protocols. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, GroupKind, group_kind_of

Name = tuple[str, str]
"""Namespace ("" for cluster-scoped kinds) and name of a federated object."""


class WorldObjects(Protocol):
    """Federated objects by what they are made of; `runtime.FederatedObjects` has those of the present."""

    def of_kind(self, kind: GroupKind, namespace: str = "") -> Iterable[Mapping[str, Any]]:
        """Return those whose template is of the kind, of one namespace or of all."""
        ...

    def of_source(self, group: str, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return that of a source, None without one."""
        ...

    def scan(self) -> Iterator[Mapping[str, Any]]:
        """Yield all of them."""
        ...


class ListedObjects:
    """Federated objects that were read once, none at first."""

    def __init__(self, objects: Iterable[Mapping[str, Any]] = ()) -> None:
        self._objects = tuple(objects)

    @cached_property
    def _by_kind(self) -> Mapping[GroupKind, list[Mapping[str, Any]]]:
        found: dict[GroupKind, list[Mapping[str, Any]]] = {}
        for each in self._objects:
            if template := each["spec"].get("template"):
                found.setdefault(group_kind_of(template), []).append(each)
        return found

    def of_kind(self, kind: GroupKind, namespace: str = "") -> Iterable[Mapping[str, Any]]:
        """Return those whose template is of the kind, of one namespace or of all."""
        listed = self._by_kind.get(kind, ())
        return [each for each in listed if namespace in ("", each["metadata"].get("namespace"))]

    def of_source(self, group: str, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return that of a source, None without one."""
        listed = self.of_kind(GroupKind(group, kind), namespace)
        return next((each for each in listed if each["spec"]["template"]["metadata"]["name"] == name), None)

    def scan(self) -> Iterator[Mapping[str, Any]]:
        """Yield all of them."""
        return iter(self._objects)


class ClaimModes:
    """Returns the access modes of a claim of one namespace by its name, None when the host has no such claim."""

    def __init__(self, objects: WorldObjects, namespace: str) -> None:
        self._objects = objects
        self._namespace = namespace

    def __call__(self, name: str) -> Sequence[str] | None:
        """Return the modes of one claim."""
        kind = PERSISTENT_VOLUME_CLAIMS
        claim = self._objects.of_source(kind.group, kind.kind, self._namespace, name)
        return None if claim is None else (claim["spec"]["template"].get("spec") or {}).get("accessModes") or ()
