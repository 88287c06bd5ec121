"""Subresources that connect to something else, as `proxy` does: every method, any path below it, and streams.

`app.py` authenticates, authorizes and audits a request by the subresource, and then the connector answers it.
"""

from collections.abc import Mapping
from typing import Protocol

from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.identity import Attributes
from federation.apiserver.http.asgi import Request


class Connector(Protocol):
    """Answers the requests of one subresource."""

    @property
    def is_namespaced(self) -> bool:
        """Whether the kind is namespaced. A path of the other sort is not served: other roles would authorize it."""
        ...

    def is_watch(self, request: Request, path: ResourcePath) -> bool:
        """Return whether the request is a watch or a log, which only reads, also over WebSocket."""
        ...

    def is_stream(self, request: Request, path: ResourcePath) -> bool:
        """Return whether the request may last for hours: it is then counted as a watch and needs no seat."""
        ...

    def narrower_right(self, request: Request, path: ResourcePath, verb: str) -> Attributes | None:
        """Return a right that covers this request and no other use of the subresource, None when there is none.

        It allows the request as well as the verb on the subresource does.
        """
        ...

    @property
    def forwards(self) -> bool:
        """Whether the path below the subresource is one of another API server."""
        ...

    async def serve(self, request: Request, path: ResourcePath, *, timeout_s: float | None) -> None:
        """Answer an authorized request, within `timeout_s` unless that is None; raise an ApiError to refuse it."""
        ...

    def stop(self) -> None:
        """End every request."""
        ...


Connectors = Mapping[tuple[str, str, str, str], Connector]
"""Connectors by group, version, plural and subresource; plural and subresource "" for every path of a group version."""


def rest_of(request: Request, path: ResourcePath) -> str:
    """Return the request's path below the subresource, "/" when it ends there."""
    group = f"/apis/{path.group}" if path.group else "/api"
    prefix = f"{group}/{path.version}/{path.plural}/{path.name}/{path.subresource}"
    return request.path[len(prefix) :] or "/"
