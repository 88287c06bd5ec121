"""Requests as HTTP has them: method, path, query and body. Pure.

`http.py` sends them over the network, and the web UI to the API server in its own process.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlencode

import orjson

from federation.apimachinery.resources import Object, Resource
from federation.client.client import Request

_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
}
_is_plain = re.compile(r"[A-Za-z0-9._:-]*").fullmatch
"""Matches names that need no encoding in a path: nearly all."""


class Encoded(NamedTuple):
    """One request; `query` begins with "?" or is empty, `body` is None for requests that have none."""

    method: str
    path: str
    query: str
    body: bytes | None


def encode(request: Request) -> Encoded:
    """Return the request as HTTP has it."""
    method, body = _METHODS[request.verb], None
    if method != "GET":
        body = _delete_body(request) if request.verb == "delete" else request.body
    path = _path(request.resource, request.namespace, request.name, request.subresource)
    return Encoded(method, path, _query_of(request), body)


def _path(resource: Resource, namespace: str, name: str, subresource: str) -> str:
    if not _is_plain(namespace) or not _is_plain(name):
        namespace, name = quote(namespace, safe=""), quote(name, safe=":")
    return resource.path(namespace, name, subresource)


def _query_of(request: Request) -> str:
    match request.verb:
        case "get" | "delete":
            return ""
        case "list":
            return _query(
                labelSelector=request.label_selector,
                fieldSelector=request.field_selector,
                limit=str(request.limit or ""),
                **{"continue": request.continue_token},
            )
        case "watch":
            return _query(
                watch="true",
                allowWatchBookmarks="true",
                resourceVersion=request.resource_version,
                labelSelector=request.label_selector,
                fieldSelector=request.field_selector,
                timeoutSeconds=str(request.timeout_s or ""),
            )
        case _:
            return _query(
                fieldManager=request.field_manager,
                force="true" if request.force else "",
                dryRun="All" if request.dry_run else "",
            )


@lru_cache(maxsize=512)
def _query(**parameters: str) -> str:
    """Return the query string of the parameters that are set; a control plane repeats a few of them."""
    given = {key: value for key, value in parameters.items() if value}
    return "?" + urlencode(given) if given else ""


def _delete_body(request: Request) -> bytes:
    """Return the DeleteOptions of a request."""
    body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
    preconditions = {"uid": request.uid, "resourceVersion": request.resource_version}
    if given := {key: value for key, value in preconditions.items() if value}:
        body["preconditions"] = given
    if request.propagation_policy:
        body["propagationPolicy"] = request.propagation_policy
    if request.grace_period_s is not None:
        body["gracePeriodSeconds"] = request.grace_period_s
    return orjson.dumps(body)
