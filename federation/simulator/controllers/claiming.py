"""Dependents that a workload controls by its selector: it takes orphans that match, and releases what matches no more.

So a workload that was deleted with `--cascade=orphan` and is created again goes on with its pods, as in Kubernetes, and
a pod that loses its labels is left alone and replaced.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from federation.apimachinery.errors import Conflict, NotFound
from federation.apimachinery.ownerreferences import controller_of, controller_reference, controller_uids
from federation.apimachinery.resources import REPLICATION_CONTROLLERS, Object, Resource
from federation.apimachinery.selectors import Selector, compile_label_selector
from federation.client.client import Client
from federation.runtime.controller import Controller, Key
from federation.runtime.handlers import Handler
from federation.runtime.informer import Informer

BY_OWNER = "owner"
"""The index of dependents by the uid of the controlling owner."""
_ORPHANS = "orphans"
"""The index of those without a controlling owner, by each of their labels."""


class Dependents:
    """The objects of one kind that workloads control, such as pods."""

    def __init__(self, client: Client, dependents: Informer) -> None:
        self._client = client
        self._dependents = dependents
        dependents.add_index(BY_OWNER, controller_uids)
        dependents.add_index(_ORPHANS, _orphan_values)

    def owned(self, owner: Mapping[str, Any]) -> list[Object]:
        """Return what the owner controls."""
        return self._dependents.by_index(BY_OWNER, owner["metadata"]["uid"])

    async def claim(self, owner: Object, resource: Resource, *, may_take: Callable[[Object], bool] = bool) -> None:
        """Take the orphans that the owner's selector matches, and release what it matches no more.

        The owner is of kind `resource`; only orphans for which `may_take` holds are taken. Returns when the cache has
        the changes.
        """
        selector = selector_of(owner)
        released = [obj for obj in self.owned(owner) if not _is_selected(selector, obj)]
        taken = [
            obj
            for obj in self._candidates(owner)
            if controller_of(obj) is None
            and _is_selected(selector, obj)
            and "deletionTimestamp" not in obj["metadata"]
            and may_take(obj)
        ]
        for obj in released:
            uid = owner["metadata"]["uid"]
            await self._write(obj, [each for each in _references(obj) if each.get("uid") != uid])
        for obj in taken:
            reference = controller_reference(owner, resource.api_version, resource.kind)
            others = [each for each in _references(obj) if each.get("uid") != reference["uid"]]
            await self._write(obj, [*others, reference])

    def _candidates(self, owner: Mapping[str, Any]) -> Iterable[Object]:
        """Return the orphans with the first label that the selector asks for; all objects when it asks for none."""
        namespace = owner["metadata"]["namespace"]
        labels = (_selector_in(owner) or {}).get("matchLabels") or {}
        if not labels:
            return self._dependents.list(namespace)
        key = min(labels)
        return self._dependents.by_index(_ORPHANS, _value(namespace, key, labels[key]))

    async def _write(self, obj: Object, references: list[Object]) -> None:
        meta = obj["metadata"]
        patch = {
            "metadata": {
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
                "ownerReferences": references or None,
            }
        }
        try:
            written = await self._client.patch(
                self._dependents.resource, meta["name"], patch, namespace=meta["namespace"]
            )
        except (Conflict, NotFound):
            return  # It has changed or is gone; its event triggers the next reconcile.
        await self._dependents.wait_for(written["metadata"]["resourceVersion"])


def selector_of(owner: Mapping[str, Any]) -> Selector:
    """Return the selector of a workload; admission has validated it."""
    return compile_label_selector(_selector_in(owner), is_validated=True)


def _selector_in(owner: Mapping[str, Any]) -> Any:
    """Return the selector as an object: a ReplicationController has the labels alone."""
    selector = owner["spec"].get("selector")
    return {"matchLabels": selector} if owner.get("kind") == REPLICATION_CONTROLLERS.kind else selector


def on_dependent_change(controller: Controller[Key], kind: str, owners: Informer) -> Handler:
    """Return a handler that queues the owner of this kind for each change of a dependent.

    An orphan queues those of `owners` whose selector matches it: when it appears, loses its owner or changes labels.
    """

    def handle(old: Object | None, new: Object | None) -> None:
        key = _owner_key(new or old or {}, kind)
        if key is not None:
            controller.enqueue(key)
        before = None if old is None else _owner_key(old, kind)
        if before is not None and before != key:
            controller.enqueue(before)
        if new is None or controller_of(new) is not None:
            return
        if old is None or controller_of(old) is not None or _labels(old) != _labels(new):
            for each in _selecting(owners.list(new["metadata"]["namespace"]), new):
                controller.enqueue(Key(each["metadata"]["namespace"], each["metadata"]["name"]))

    return handle


def _selecting(owners: Iterable[Object], obj: Object) -> list[Object]:
    return [owner for owner in owners if _is_selected(selector_of(owner), obj)]


def _owner_key(obj: Mapping[str, Any], kind: str) -> Key | None:
    """Return the key of the controlling owner of that kind, None when the object has none."""
    owner = controller_of(obj)
    is_kind = owner is not None and owner["kind"] == kind
    return Key(obj["metadata"]["namespace"], owner["name"]) if owner is not None and is_kind else None


def _is_selected(selector: Selector, obj: Mapping[str, Any]) -> bool:
    return selector.matches(_labels(obj))


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _references(obj: Mapping[str, Any]) -> list[Object]:
    return list(obj["metadata"].get("ownerReferences") or ())


def _orphan_values(obj: Object) -> list[str]:
    if controller_of(obj) is not None:
        return []
    return [_value(obj["metadata"]["namespace"], key, value) for key, value in _labels(obj).items()]


def _value(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"
