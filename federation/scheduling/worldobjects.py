"""The objects of a world, as far as steps of a decision read them. Pure.

Decision: docs/decisions/0271-a-step-names-the-kinds-that-it-reads.md
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Protocol

from federation.api import names
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, GroupKind, Object, Resource, group_kind_of
from federation.planning.accounts.accountledger import Ledger
from federation.planning.federatedobject.placements import PLACED_IN, Name, effective_placement, placement_of

PLACED_NAMESPACE = "placed-namespace"


def _placed_namespace(federated: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the namespace of an object that the scheduler has placed, as the values of an index."""
    return (federated["metadata"].get("namespace", ""),) if placement_of(federated, names.GLOBAL_SCHEDULER) else ()


INDEXES: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {
    PLACED_IN: effective_placement,
    PLACED_NAMESPACE: _placed_namespace,
}
"""The indexes of a world's objects by name, each with the values of an object."""


def name_of(federated: Mapping[str, Any]) -> Name:
    """Return namespace and name of an object."""
    metadata = federated["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


class WorldObjects(Protocol):
    """Federated objects by what they are made of; `runtime.FederatedObjects` has those of the present."""

    def of_kind(self, kind: GroupKind, namespace: str = "") -> Iterable[Mapping[str, Any]]:
        """Return those whose template is of the kind, of one namespace or of all."""
        ...

    def keys_of_kind(self, kind: GroupKind, namespace: str = "") -> Sequence[Name]:
        """Return the names of what `of_kind` returns."""
        ...

    def list_namespace(self, namespace: str) -> Iterable[Mapping[str, Any]]:
        """Return those of a namespace."""
        ...

    def keys_by_index(self, name: str, value: str, namespace: str = "") -> Sequence[Name]:
        """Return the names of those that have the value in one of the `INDEXES`."""
        ...

    def of_source(self, group: str, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return that of a source, None without one."""
        ...


class Copies(Protocol):
    """The copies of objects in members; `runtime.Members` has the last known ones."""

    def get_cached(self, cluster: str, resource: Resource, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return what a cluster reported last of an object, None if that is not known."""
        ...


class Index(ABC):
    """The objects of a kind that steps read. A step names the class in `reads`, and each world has an index of it."""

    resource: ClassVar[Resource]

    @abstractmethod
    def put(self, obj: Object) -> str:
        """Add an object, or replace an equal one; return why it has no effect, "" if it has one."""

    @abstractmethod
    def remove(self, obj: Object) -> None:
        """Remove an object in the state in which it was added."""

    def is_changed(self, old: Object | None, new: Object | None) -> bool:
        """Return whether steps read anything that differs."""
        return old is None or new is None or old.get("spec") != new.get("spec")

    def affected(self, obj: Object, objects: WorldObjects) -> Iterable[Mapping[str, Any]]:
        """Return the federated objects that are decided again when an object comes, changes or goes."""
        return objects.list_namespace(obj["metadata"].get("namespace") or "")


class Accounts(Index):
    """Limits, and what is used of them. Permits ask it, and take from it (`Permit.claim`).

    A claim is written into the federated object with the decision, and counts as long as `claim_of` finds it there.
    """

    def __init__(self) -> None:
        self.ledger: Ledger[Any] = Ledger()
        self.waiting: set[Name] = set()
        """Objects that are decided again when an amount comes back."""

    @abstractmethod
    def claim_of(self, federated: Mapping[str, Any]) -> Any:
        """Return what an object has taken, None for nothing, or nothing any more."""

    def observe(self, key: Name, federated: Mapping[str, Any] | None) -> bool:
        """Record what an object has, None if it is gone; return whether that changed what is used."""
        if federated is None:
            self.waiting.discard(key)
            return self.ledger.remove(key)
        return self.ledger.report(key, self.claim_of(federated), revision_of(federated))


class ListedObjects:
    """Federated objects that were read once, none at first."""

    def __init__(self, objects: Iterable[Mapping[str, Any]] = ()) -> None:
        self._objects = tuple(objects)
        self._indexes: dict[str, dict[str, list[Name]]] = {}

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

    def list_namespace(self, namespace: str) -> Iterable[Mapping[str, Any]]:
        """Return those of a namespace."""
        return [each for each in self._objects if each["metadata"].get("namespace") == namespace]

    def of_source(self, group: str, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return that of a source, None without one."""
        listed = self.of_kind(GroupKind(group, kind), namespace)
        return next((each for each in listed if each["spec"]["template"]["metadata"]["name"] == name), None)

    def keys_of_kind(self, kind: GroupKind, namespace: str = "") -> Sequence[Name]:
        """Return the names of what `of_kind` returns."""
        return [name_of(each) for each in self.of_kind(kind, namespace)]

    def keys_by_index(self, name: str, value: str, namespace: str = "") -> Sequence[Name]:
        """Return the names of those that have the value in one of the `INDEXES`."""
        if name not in self._indexes:
            found = self._indexes[name] = {}
            for each in self._objects:
                for known in INDEXES[name](each):
                    found.setdefault(known, []).append(name_of(each))
        return [key for key in self._indexes[name].get(value, ()) if namespace in ("", key[0])]


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
