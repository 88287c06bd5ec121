"""The Kubernetes API as controllers see it: thin verbs of `Client` over one `Transport`.

A verb builds a `Request`; a transport carries it out. `http.py` reaches any API server, `local.py` a registry in the
same process, and `limitedtransport.py` adds limits and a circuit breaker to another transport. Errors are ApiErrors for
Kubernetes' answers and ClusterErrors when there was no answer. Nothing here retries.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlencode

import orjson

from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object, Resource, UserInfo


class PatchType(StrEnum):
    """Content types of PATCH."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class WatchEventType(StrEnum):
    """Types of watch events. ERROR is missing: a transport raises it as an ApiError (Expired for 410)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(NamedTuple):
    """One change. A BOOKMARK's object has no meaningful field but `metadata.resourceVersion`."""

    type: WatchEventType
    object: Object


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list: `continue_token` is "" on the last page."""

    items: list[Object]
    resource_version: str
    continue_token: str = ""


class ObjectPage(NamedTuple):
    """As `ObjectList`; an item is parsed when it is read, and again when it is read again."""

    items: Sequence[Object]
    resource_version: str
    continue_token: str = ""


WatchBatch = list[WatchEvent]
Objects = list[Object]
Watch = AsyncGenerator[WatchBatch, None]
IsWanted = Callable[[], bool]
LineFilter = Callable[[bytes], bool]
"""Returns whether the reader of a watch needs nothing of an event, given its JSON as the server sent it."""
Verb = Literal["get", "list", "create", "update", "patch", "apply", "delete", "watch"]


class Request(NamedTuple):
    """One request for a resource. Fields that a verb does not use keep their defaults."""

    verb: Verb
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: bytes = b""
    content_type: str = "application/json"
    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    """The start of a watch, or the precondition of a delete."""
    uid: str = ""
    propagation_policy: str = ""
    grace_period_s: int | None = None
    timeout_s: int = 0
    """How long the server keeps a watch open; 0 leaves it to the server."""
    user: UserInfo | None = None
    """The user that the server authorizes, admits and charges, None for ourselves: see `Client.patch`."""
    is_review: bool = False
    """Whether a creation in a dry run asks for validation and admission only: see `Client.review`."""
    skips: LineFilter | None = None
    """The lines of a watch that are not parsed: see `Client.watch`."""
    is_plan: bool = False
    """Whether a dry run is for a plan: whoever sends it has checked that the user may plan it or make the write."""
    is_wanted: IsWanted | None = None
    """Asked last before the request leaves for a member: see `Client.delete`."""


class Transport(Protocol):
    """Carries out requests. Every call can raise an ApiError or a ClusterError."""

    async def request(self, request: Request) -> Object:
        """Return the object, the List document for `list`, or {} for `delete`; the caller owns it.

        The items of a list may be `listdocument.Items`.
        """
        ...

    def stream(self, request: Request) -> Watch:
        """Yield an empty batch when the watch is established, then batches of events in order."""
        ...

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        """Return status code and body of any request, whatever the status; `accept` replaces "application/json"."""
        ...

    async def close(self) -> None:
        """Release connections; later calls fail."""
        ...


class Client:
    """A Kubernetes API."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Return the object; NotFound when there is none."""
        return await self.transport.request(Request("get", resource, namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return one page (everything when `limit` is 0) of one namespace, or of all namespaces when it is ""."""
        page = await self.page(
            resource,
            namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=continue_token,
        )
        return ObjectList(list(page.items), page.resource_version, page.continue_token)

    async def page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int,
        continue_token: str = "",
    ) -> ObjectPage:
        """As `list`, for one pass over large pages: reading an item may raise ClusterError."""
        answer = await self.transport.request(
            Request(
                "list",
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_token=continue_token,
            )
        )
        metadata = answer.get("metadata") or {}
        return ObjectPage(
            answer.get("items") or (), str(metadata.get("resourceVersion", "")), metadata.get("continue") or ""
        )

    async def list_all(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", limit: int
    ) -> AsyncGenerator[Object, None]:
        """Yield the objects of all pages, `limit` objects each, requesting a page when it is reached."""
        token = ""
        while True:
            page = await self.page(
                resource, namespace, label_selector=label_selector, limit=limit, continue_token=token
            )
            for obj in page.items:
                yield obj
            if not (token := page.continue_token):
                return

    async def create(self, resource: Resource, obj: Object, *, field_manager: str = "") -> Object:
        """Create the object in its metadata.namespace and return it as stored; AlreadyExists, Invalid."""
        namespace = obj["metadata"].get("namespace", "")
        return await self.transport.request(
            Request("create", resource, namespace, body=orjson.dumps(obj), field_manager=field_manager)
        )

    async def review(self, resource: Resource, obj: Object, *, user: UserInfo) -> Object:
        """Return the object as it would be stored if the user created it; ApiError when the server refuses that.

        The server validates and admits the object and stores nothing; it does not check the user's permissions. A
        registry in process answers although the name is taken; over HTTP the answer is AlreadyExists then, and comes
        after validation and admission. Over HTTP only the users in `names.REVIEWERS` are impersonated, who need
        permission to create; other reviews are as ourselves there.
        """
        namespace, body = obj["metadata"].get("namespace", ""), orjson.dumps(obj)
        return await self.transport.request(
            Request("create", resource, namespace, body=body, dry_run=True, user=user, is_review=True)
        )

    async def update(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object, or its subresource; Conflict when metadata.resourceVersion is stale."""
        metadata = obj["metadata"]
        return await self.transport.request(
            Request("update", resource, metadata.get("namespace", ""), metadata["name"], subresource, orjson.dumps(obj))
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: bytes | Object | Objects,
        *,
        patch_type: PatchType = PatchType.MERGE,
        namespace: str = "",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        user: UserInfo | None = None,
    ) -> Object:
        """Patch the object, or its subresource, and return it; APPLY needs `field_manager` and honours `force`.

        With `dry_run` the server checks, defaults and admits, and stores nothing. With `user` the write is that user's:
        his rights, quotas and admission decide. A server over HTTP, which does not let us act as everybody, decides
        about ourselves.
        """
        return await self.transport.request(
            Request(
                "apply" if patch_type is PatchType.APPLY else "patch",
                resource,
                namespace,
                name,
                subresource,
                body if isinstance(body, bytes) else orjson.dumps(body),
                patch_type.value,
                field_manager,
                force,
                dry_run,
                user=user,
            )
        )

    async def patch_status(
        self, resource: Resource, obj: Object, status: Object, *, field_manager: str
    ) -> Object | None:
        """Merge the fields into the status of exactly this version; Conflict for another one, None if it is gone.

        For lists, which a merge patch replaces as a whole.
        """
        metadata = obj["metadata"]
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status}
        try:
            return await self.patch(
                resource,
                metadata["name"],
                body,
                namespace=metadata.get("namespace", ""),
                subresource="status",
                field_manager=field_manager,
            )
        except NotFound:
            return None

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation_policy: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
        user: UserInfo | None = None,
        is_wanted: IsWanted | None = None,
    ) -> None:
        """Request the deletion; Conflict when uid or resourceVersion, the preconditions, do not hold.

        `user` as in `patch`. A request to a member may wait for a slot and for the check of a new connection.
        `is_wanted` is asked afterwards: RequestWithdrawn if it says no.
        """
        await self.transport.request(
            Request(
                "delete",
                resource,
                namespace,
                name,
                propagation_policy=propagation_policy,
                uid=uid,
                resource_version=resource_version,
                grace_period_s=grace_period_s,
                user=user,
                is_wanted=is_wanted,
            )
        )

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int = 0,
        skips: LineFilter | None = None,
    ) -> Watch:
        """Yield batches of changes after `resource_version`, bookmarks among them, until the server ends the watch.

        The first batch is empty and means that the watch is established. Expired when the server no longer has the
        revision. A transport may leave out the events that `skips` names, so the reader has to ignore them, too.
        """
        return self.transport.stream(
            Request(
                "watch",
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                resource_version=resource_version,
                timeout_s=timeout_s,
                skips=skips,
            )
        )

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_s: float = 30.0,
        accept: str = "",
    ) -> tuple[int, bytes]:
        """Send any request (health, version, discovery) and return status code and body, whatever the status.

        `accept` names the wanted forms of the answer, in place of "application/json".
        """
        if query:
            path += ("&" if "?" in path else "?") + urlencode(query)
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        return await self.transport.raw(method, path, data, timeout_s, accept)

    async def close(self) -> None:
        """Release connections; later calls fail."""
        await self.transport.close()
