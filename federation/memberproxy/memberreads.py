"""Reads of users in a member, as `MemberProxy` sends them: with the federation's credentials, in the name of the user.

Answers are judged by their shape only: a member can send anything. Objects without the shape of an object, or of
another namespace than the requested one, are left out.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from federation.apimachinery.errors import (
    ApiError,
    BadRequest,
    ClusterError,
    ClusterLimitExceeded,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    from_status,
)
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.objectshape import REVISION_LENGTH_MAX, is_storable
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.webhookclient import StreamedResponse
from federation.apiserver.auth.identity import User
from federation.apiserver.http.forwardedheaders import is_redirect, user_headers
from federation.apiserver.http.forwarding import encoded_target
from federation.client.client import WatchEvent
from federation.client.delegate import Delegate
from federation.client.pool import ClusterPool
from federation.client.streams import until_idle
from federation.client.watchdecoder import LineSplitter, to_event
from federation.memberproxy.memberusers import to_member_user

_REFUSAL_BYTES_MAX: Final = 64 * 1024
"""Bytes of a member's error 403 that are read. They show whether it refuses the user or the federation's account."""
_CANNOT_ACT: Final = b"cannot impersonate"
"""Since 1.36 Kubernetes goes on with `-on:user-info:VERB` here, before that with ` resource`."""
_EVENT_BYTES_MAX: Final = 4 * 1024 * 1024
_KIND_LENGTH_MAX: Final = 128
_HEAD_S_MAX: Final = 30.0
_IDLE_S_MAX: Final = 300.0
"""A watch without a byte for so long ends: servers send bookmarks every minute."""


@dataclass(frozen=True, slots=True)
class MemberPage:
    """One page of a member's list: its objects, their revision, and the token of the next page."""

    items: list[Object]
    revision: str
    token: str = ""
    kind: str = ""
    """The kind of its objects, "" if the member does not say it."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of one kind that a user wants from a member."""

    resource: Resource
    namespace: str
    label_selector: str = ""
    field_selector: str = ""

    def target(self, **parameters: str) -> str:
        """Return path and query of a list or watch."""
        given = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector, **parameters}
        query = urlencode({key: value for key, value in given.items() if value})
        return encoded_target(self.resource.path(self.namespace), query.encode())

    def accepts(self, obj: Object) -> bool:
        """Return whether the member's object has the shape of one, and the namespace."""
        return _is_object(obj) and self.namespace in ("", obj["metadata"].get("namespace"))


async def get(pool: ClusterPool, cluster: str, user: User, resource: Resource, namespace: str, name: str) -> Object:
    """Return an object; NotFound, Forbidden, or a ClusterError when the member does not answer."""
    found = await read(pool, cluster, user, encoded_target(resource.path(namespace, name)), _EVENT_BYTES_MAX)
    if not _is_object(found) or found["metadata"]["name"] != name:
        raise ClusterError(f"cluster {cluster} answered without the object {name}")
    return found


async def list_page(
    pool: ClusterPool, cluster: str, user: User, selection: Selection, *, limit: int, token: str, bytes_max: int
) -> MemberPage:
    """Return one page of the selected objects."""
    target = selection.target(limit=str(limit), **{"continue": token})
    found = await read(pool, cluster, user, target, bytes_max)
    items, metadata = found.get("items"), found.get("metadata") or {}
    revision, next_token = metadata.get("resourceVersion") or "", metadata.get("continue") or ""
    if not isinstance(items, list | None) or not isinstance(revision, str) or not isinstance(next_token, str):
        raise ClusterError(f"cluster {cluster} answered a list request without a list")
    kind = found.get("kind")
    is_list = isinstance(kind, str) and len(kind) <= _KIND_LENGTH_MAX and kind.endswith("List") and kind.isalnum()
    objects = [item for item in items or () if selection.accepts(item)]
    return MemberPage(objects, revision, next_token, str(kind).removesuffix("List") if is_list else "")


async def watch(
    pool: ClusterPool, cluster: str, user: User, selection: Selection, revision: str
) -> AsyncGenerator[WatchEvent, None]:
    """Yield the changes after the revision, or first the existing objects without one; ApiError, ClusterError."""
    splitter = LineSplitter(_EVENT_BYTES_MAX)
    target = selection.target(watch="true", resourceVersion=revision, allowWatchBookmarks="true")
    async with asyncio.timeout(_HEAD_S_MAX) as head, _opened(pool, cluster, user, target) as response:
        head.reschedule(None)
        async for piece in until_idle(response.body, _IDLE_S_MAX):
            for line in splitter.feed(piece):
                event = to_event(line)
                if isinstance(event, ApiError):
                    raise event
                yield event


async def read(pool: ClusterPool, cluster: str, user: User, target: str, bytes_max: int) -> Object:
    """Return the JSON object at a path; an ApiError of the member, or a ClusterError when it does not answer so."""
    async with _opened(pool, cluster, user, target) as response:
        found = parse_object(await _body(cluster, response, bytes_max))
    if found is None:
        raise ClusterError(f"cluster {cluster} answered without a JSON object")
    return found


@asynccontextmanager
async def _opened(pool: ClusterPool, cluster: str, user: User, target: str) -> AsyncIterator[StreamedResponse]:
    """Send a GET in the name of the user; raise the error that a response without success stands for."""
    headers = [("Accept", "application/json"), *user_headers(to_member_user(user), "Impersonate")]
    async with delegate_of(pool, cluster).exchange("GET", target, headers, None) as answer:
        response = await checked(cluster, answer)
        if response.status >= 300:
            text = await _body(cluster, response, _REFUSAL_BYTES_MAX)
            raise from_status(parse_object(text) or {}, response.status)
        yield response


async def _body(cluster: str, response: StreamedResponse, bytes_max: int) -> bytes:
    body = bytearray()
    async for piece in response.body:
        body += piece
        if len(body) > bytes_max:
            raise ClusterLimitExceeded(f"cluster {cluster} answered with more than {bytes_max} bytes")
    return bytes(body)


def delegate_of(pool: ClusterPool, cluster: str) -> Delegate:
    """Return what passes requests on to the member; NotFound."""
    try:
        return pool.delegate(cluster)
    except NotFound as error:
        raise NotFound(f"{error.message}: it is not joined") from None


async def checked(cluster: str, response: StreamedResponse, *, is_upgrade: bool = False) -> StreamedResponse:
    """Return the response, or raise what the client gets instead."""
    if response.status < 200 or is_redirect(response.status, {name.lower(): text for name, text in response.headers}):
        text = f'cluster "{cluster}" answered {response.status}: redirects and upgrades are not passed on'
        raise ApiError(text, code=502, reason="BadGateway")
    if response.status == 401:
        raise unauthorized(cluster)
    if is_upgrade and response.status in (200, 400):
        raise BadRequest("this server connects to pods over WebSocket only, not SPDY/3.1: use kubectl 1.31 or later")
    if response.status != 403:
        return response
    start = b""
    async for piece in response.body:
        start += piece
        if len(start) > _REFUSAL_BYTES_MAX:
            break
    if _CANNOT_ACT in start:
        raise Forbidden(
            f'cluster "{cluster}" does not let the federation act for its users, so no request is passed on: an'
            " administrator of the cluster allows it with examples/member-proxy/impersonation.yaml"
        )
    return response._replace(body=_chained(start, response.body))


def revision_of(obj: Object) -> str:
    """Return the resourceVersion of an object, "" without a usable one."""
    metadata = obj.get("metadata")
    revision = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return revision if isinstance(revision, str) and len(revision) <= REVISION_LENGTH_MAX else ""


def _is_object(obj: Any) -> bool:
    """Return whether this is an object; metrics, which are computed, have no resourceVersion."""
    if not isinstance(obj, dict) or not isinstance(metadata := obj.get("metadata"), dict):
        return False
    return is_storable({**obj, "metadata": {"resourceVersion": "", **metadata}})


async def _chained(start: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield start
    async for piece in rest:
        yield piece


def unauthorized(cluster: str) -> ServiceUnavailable:
    """Return the error for a member that rejects the federation's credentials."""
    # A 401 would make clients ask the user for another password of the host.
    return ServiceUnavailable(f'cluster "{cluster}" rejects the credentials of the federation')
