"""Common parts of all handlers below `/federation/v1`: parameters, permissions and JSON responses."""

from collections.abc import Sequence
from typing import Any, Protocol

import orjson
from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from federation.apimachinery.errors import BadRequest, Forbidden, RequestEntityTooLarge
from federation.apimachinery.resources import Resource
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.asgi import Disconnected
from federation.apiserver.http.nonresource import AUTHORIZE, NAMESPACES


class ServedKinds(Protocol):
    """The kinds that the host serves."""

    def of_kind(self, kind: str) -> Sequence[Resource]:
        """Return the served resources of a kind in any group, one version of each."""
        ...


async def check_parameters(request: Request) -> None:
    """Raise BadRequest for a query parameter that the handler of the route does not take."""
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    if unknown := sorted(set(request.query_params) - known):
        raise BadRequest(f"{unknown[0]}: no such parameter; there are {', '.join(sorted(known)) or 'none'}")


async def read_body(request: Request, bytes_max: int, too_large: str) -> bytes:
    """Return the body; RequestEntityTooLarge with the message `too_large` above the limit, Disconnected."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > bytes_max:
                raise RequestEntityTooLarge(too_large)
    except ClientDisconnect as error:
        raise Disconnected from error
    return bytes(body)


def required_permissions(
    kinds: ServedKinds, kind: str | None, group: str | None, namespace: str | None, name: str | None
) -> list[Attributes]:
    """Return what a user must be able to read for what is derived from these objects.

    That is `get` with a name, and `list` without one, on every served kind of that name, None for any group. The list
    is empty when no such kind is served or named.
    """
    if not kind:
        return []
    served = kinds.of_kind(kind)
    verb, one = ("get", name) if name else ("list", "")
    return [
        Attributes(
            verb,
            resource.group,
            resource.version,
            resource.plural,
            namespace=(namespace or "") if resource.namespaced else "",
            name=one,
        )
        for resource in served
        if group in (None, resource.group)
    ]


def to_read(resource: Resource, verb: str, namespace: str, name: str = "") -> Attributes:
    """Return what a user must be able to do to read a resource in a namespace ("" for all)."""
    return Attributes(verb, resource.group, resource.version, resource.plural, namespace=namespace, name=name)


async def may_list(request: Request, resource: Resource, namespace: str) -> bool:
    """Return whether the user may list a resource in a namespace ("" for all)."""
    try:
        await request.scope[AUTHORIZE]([to_read(resource, "list", namespace)], is_path_enough=False)
    except Forbidden:
        return False
    return True


async def namespaces_to_list(request: Request, resource: Resource, namespace: str) -> list[str]:
    """Return where the user may list a resource: the namespace that he asks for; for "", all (""), or his own ones."""
    asked = namespace if resource.namespaced else ""
    if await may_list(request, resource, asked):
        return [asked]
    if asked or not resource.namespaced:
        return []
    return [each for each in own_namespaces(request) if await may_list(request, resource, each)]


def own_namespaces(request: Request) -> list[str]:
    """Return the namespaces in which the user has a role; none on an existing host, which does not tell."""
    return sorted(request.scope[NAMESPACES]()) if NAMESPACES in request.scope else []


def json_response(status: int, value: Any) -> Response:
    """Return a response with this value."""
    return Response(orjson.dumps(value), status_code=status, media_type="application/json")
