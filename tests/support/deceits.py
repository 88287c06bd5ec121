"""Members that lie: what an API server answers instead of the truth, between the control plane and a simulated member.

A `Deceit` stands in a member's line (`lines.MemberLine.deceit`) and may change every request, answer and watch event.
Errors, broken connections and slowness are in `faults.py` and `member_world.Line`. `tests/faults/test_lying_worlds.py`
has the matrix of these members and of what users do meanwhile.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import orjson

from federation.apimachinery.errors import ApiError, Forbidden, Invalid
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Object
from federation.client.client import Request, WatchBatch, WatchEvent, WatchEventType
from tests.support.faults import WRITES

Send = Callable[[Request], Awaitable[Object]]
_WORKLOADS = frozenset({DEPLOYMENTS, CONFIGMAPS})


class Deceit:
    """The truth; subclasses replace a part of it."""

    async def answer(self, request: Request, send: Send) -> Object:
        """Return the answer to a request; `send` asks the member itself."""
        return await send(request)

    def told(self, request: Request, batch: WatchBatch) -> WatchBatch:  # the truth needs no request
        """Return the events that a watch reports."""
        return batch

    def document(self, path: str, code: int, body: bytes) -> tuple[int, bytes]:
        """Return the answer to a request for health, version or discovery."""
        return code, body


TRUTH = Deceit()


class _ChangedLists(Deceit):
    """Lists whose items are others than the member's, and watches that report the same."""

    async def answer(self, request: Request, send: Send) -> Object:
        answer = await send(request)
        if request.verb != "list" or request.resource not in _WORKLOADS:
            return answer
        return {**answer, "items": list(self._items(list(answer["items"])))}

    def _items(self, items: list[Object]) -> Iterable[Object]:
        return items


class OtherNamespaces(_ChangedLists):
    """Each object is listed and reported a second time, as one of a namespace that nobody asked for."""

    def _items(self, items: list[Object]) -> Iterable[Object]:
        return [*items, *(_moved(item) for item in items)]

    def told(self, request: Request, batch: WatchBatch) -> WatchBatch:
        if request.resource not in _WORKLOADS:
            return batch
        return [*batch, *(event._replace(object=_moved(event.object)) for event in batch if _is_change(event))]


class Duplicates(_ChangedLists):
    """Each object is listed twice, the second time as it was before; each event comes twice."""

    def _items(self, items: list[Object]) -> Iterable[Object]:
        return [*items, *(_older(item) for item in items), *items]

    def told(self, request: Request, batch: WatchBatch) -> WatchBatch:
        if request.resource not in _WORKLOADS:
            return batch
        return [told for event in batch for told in (event, event)]


class OldRevisions(_ChangedLists):
    """Lists and events have revisions that the member had long ago, as after a restore of its etcd in place."""

    async def answer(self, request: Request, send: Send) -> Object:
        answer = await super().answer(request, send)
        if request.verb == "list" and request.resource in _WORKLOADS:
            return {**answer, "metadata": {**answer["metadata"], "resourceVersion": "1"}}
        return answer

    def _items(self, items: list[Object]) -> Iterable[Object]:
        return [_older(item) for item in items]

    def told(self, request: Request, batch: WatchBatch) -> WatchBatch:
        if request.resource not in _WORKLOADS:
            return batch
        return [event._replace(object=_older(event.object)) if _is_change(event) else event for event in batch]


class Refuses(Deceit):
    """Every write is refused, as by an admission policy or a quota of the member."""

    def __init__(self, error: Callable[[], ApiError]) -> None:
        self._error = error

    async def answer(self, request: Request, send: Send) -> Object:
        if request.verb in WRITES and request.resource in _WORKLOADS:
            raise self._error()
        return await send(request)


def refuses_by_policy() -> Refuses:
    """Return a member that answers every write with 403."""
    return Refuses(lambda: Forbidden("admission webhook policy.example.com denied the request: not today"))


def refuses_as_invalid() -> Refuses:
    """Return a member that answers every write with 422."""
    return Refuses(lambda: Invalid("Deployment is invalid: spec: Invalid value: not here"))


class Mutates(Deceit):
    """A webhook of the member changes what is written: images come from its registry, and objects get a label."""

    async def answer(self, request: Request, send: Send) -> Object:
        if request.verb not in ("apply", "create", "update") or request.resource != DEPLOYMENTS:
            return await send(request)
        body = orjson.loads(request.body)
        for container in _containers(body):
            container["image"] = f"mirror.example/{container['image']}"
        body["metadata"].setdefault("labels", {})["webhook"] = "was-here"
        return await send(request._replace(body=orjson.dumps(body)))


class Reverts(Deceit):
    """A controller of the member puts the replicas back to one after every write of ours."""

    async def answer(self, request: Request, send: Send) -> Object:
        answer = await send(request)
        if request.verb in ("apply", "create", "update") and request.resource == DEPLOYMENTS and not request.dry_run:
            patch = {"spec": {"replicas": 1}}
            body = orjson.dumps(patch)
            back = Request(
                "patch", request.resource, request.namespace, request.name, "", body, "application/merge-patch+json"
            )
            await send(back._replace(field_manager="operator"))
        return answer


class Forgets(Deceit):
    """Every write is answered as if it had been done, and nothing is stored."""

    async def answer(self, request: Request, send: Send) -> Object:
        if request.verb in WRITES and request.resource in _WORKLOADS:
            if request.verb == "delete":
                await send(request._replace(verb="get", uid="", resource_version=""))
                return {}
            return await send(request._replace(dry_run=True))
        return await send(request)


class WrongObjects(Deceit):
    """A request for one object, or a write of one, is answered with another object."""

    async def answer(self, request: Request, send: Send) -> Object:
        answer = await send(request)
        if request.verb in ("list", "delete") or request.resource not in _WORKLOADS:
            return answer
        return {**answer, "metadata": {**answer["metadata"], "name": "another", "uid": "another"}}


class ImpossibleStatus(_ChangedLists):
    """The statuses of Deployments have values that a Kubernetes API server refuses."""

    async def answer(self, request: Request, send: Send) -> Object:
        answer = await super().answer(request, send)
        is_one = request.verb in ("get", "apply", "patch", "create") and request.resource == DEPLOYMENTS
        return _impossible(answer) if is_one else answer

    def _items(self, items: list[Object]) -> Iterable[Object]:
        return map(_impossible, items)

    def told(self, request: Request, batch: WatchBatch) -> WatchBatch:
        if request.resource != DEPLOYMENTS:
            return batch
        return [event._replace(object=_impossible(event.object)) if _is_change(event) else event for event in batch]


class Malformed(ImpossibleStatus):
    """Deployments have numbers beyond all integers: no cache takes such an object."""

    def _items(self, items: list[Object]) -> Iterable[Object]:
        return map(_malformed, items)

    async def answer(self, request: Request, send: Send) -> Object:
        return await _ChangedLists.answer(self, request, send)

    def told(self, request: Request, batch: WatchBatch) -> WatchBatch:
        if request.resource != DEPLOYMENTS:
            return batch
        return [event._replace(object=_malformed(event.object)) if _is_change(event) else event for event in batch]


class WithoutNodes(Deceit):
    """Nodes cannot be seen any more: their list is empty."""

    async def answer(self, request: Request, send: Send) -> Object:
        answer = await send(request)
        is_nodes = request.verb == "list" and request.resource.plural == "nodes"
        return {**answer, "items": []} if is_nodes else answer


class WithoutKinds(Deceit):
    """Discovery answers 200 without any group, as an API server that has just started can."""

    def document(self, path: str, code: int, body: bytes) -> tuple[int, bytes]:
        if path not in ("/api", "/apis") or code != 200:
            return code, body
        answer = orjson.loads(body)
        return code, orjson.dumps({**answer, "items": [], "groups": [], "versions": []})


class WithoutGroup(Deceit):
    """Discovery, and with it the API, has lost a group: its aggregated server or its CRDs are gone."""

    def __init__(self, group: str) -> None:
        self._group = group

    def document(self, path: str, code: int, body: bytes) -> tuple[int, bytes]:
        if path != "/apis" or code != 200:
            return code, body
        answer = orjson.loads(body)
        for field in ("items", "groups"):
            if field in answer:
                answer[field] = [each for each in answer[field] if self._group not in (each.get("name"), _name(each))]
        return code, orjson.dumps(answer)


class ForgottenSelectors(Deceit):
    """Label selectors, field selectors and namespaces of lists are ignored: everything is listed."""

    async def answer(self, request: Request, send: Send) -> Object:
        if request.verb == "list" and request.resource in _WORKLOADS | {NAMESPACES}:
            return await send(request._replace(label_selector="", field_selector="", namespace=""))
        return await send(request)


def _name(item: Object) -> Any:
    return (item.get("metadata") or {}).get("name")


def _is_change(event: WatchEvent) -> bool:
    return event.type is not WatchEventType.BOOKMARK


def _moved(item: Object) -> Object:
    return {**item, "metadata": {**item["metadata"], "namespace": "elsewhere"}}


def _older(item: Object) -> Object:
    metadata = {**item["metadata"], "resourceVersion": "1"}
    spec = {**item["spec"], "replicas": 1} if "replicas" in (item.get("spec") or {}) else item.get("spec")
    return {**item, "metadata": metadata, **({"spec": spec} if spec is not None else {})}


def _impossible(item: Object) -> Object:
    status = {**(item.get("status") or {}), "readyReplicas": -1, "availableReplicas": "many", "collisionCount": 2**40}
    status["conditions"] = [{"type": "Available", "status": "Perhaps", "lastTransitionTime": "yesterday"}]
    return {**item, "status": status}


def _malformed(item: Object) -> Object:
    return {**item, "metadata": {**item["metadata"], "generation": 2**70}}


def _containers(body: Object) -> Iterable[Object]:
    return body.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or ()
