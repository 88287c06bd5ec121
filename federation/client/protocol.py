"""The one way in which a controller sees a Kubernetes API: the host's or a member's, in process or over HTTP.

`LocalClient` (in process, on a registry) and `HTTPClient` (any Kubernetes API server) implement it and pass the same
conformance suite. Errors are `ApiError`s for Kubernetes answers and `ClusterError`s when there was no answer.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from federation.api.resources import Object, Resource


class PatchType(StrEnum):
    """The content types of PATCH."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class WatchEventType(StrEnum):
    """What a watch reports. ERROR never reaches the caller: it is raised as an ApiError (Expired for 410)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. For BOOKMARK only `object.metadata.resourceVersion` is meaningful."""

    type: WatchEventType
    object: Object


@dataclass(frozen=True, slots=True)
class ObjectList:
    """One page of a list: `continue_token` is "" on the last page."""

    items: list[Object]
    resource_version: str
    continue_token: str = ""


WatchBatch = list[WatchEvent]
Objects = list[Object]


class Client(Protocol):
    """A Kubernetes API. Every call may raise an ApiError or a ClusterError; none retries by itself."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Return the object; NotFound when there is none."""
        ...

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
        """Return one page (all when `limit` is 0) of the namespace, or of all namespaces when it is ""."""
        ...

    async def create(self, resource: Resource, obj: Object, *, field_manager: str = "") -> Object:
        """Create the object and return it as stored; AlreadyExists, Invalid, …"""
        ...

    async def update(
        self, resource: Resource, obj: Object, *, subresource: str = "", field_manager: str = ""
    ) -> Object:
        """Replace the object; with metadata.resourceVersion a stale one is a Conflict."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: bytes | Object | Objects,
        *,
        patch_type: PatchType,
        namespace: str = "",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Patch the object and return it; `field_manager` (required) and `force` are for APPLY.

        With `dry_run` everything is checked, defaulted and admitted, and nothing stored.
        """
        ...

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
    ) -> None:
        """Ask for deletion, with uid and resourceVersion as preconditions (Conflict when they do not hold)."""
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int = 0,
    ) -> AsyncIterator[WatchBatch]:
        """Yield batches of changes after `resource_version`, in order, bookmarks among them, until the server ends it.

        An empty batch says that the watch is established. Expired when the server no longer knows the revision.
        """
        ...

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_s: float = 30.0,
    ) -> tuple[int, bytes]:
        """Send any request (health, version, discovery) and return status code and body, also when it is not 2xx."""
        ...

    async def close(self) -> None:
        """Release connections; calls after it fail."""
        ...
