"""The namespaces in which a user has a role: `/federation/v1/namespaces`, for lists of what he may not list everywhere.

Everybody may ask. Without the right to list a kind in all namespaces, a list shows that of these namespaces. On an
existing host there are none: it does not tell who has a role where.
"""

from fastapi import FastAPI, Request, Response

from federation.web.requests import json_response, own_namespaces

PATH = "/federation/v1/namespaces"


def add_routes(web: FastAPI) -> None:
    """Serve the names of namespaces."""

    @web.get(PATH)
    async def namespaces(request: Request) -> Response:
        """Return the names of the namespaces, sorted."""
        items = [{"name": name} for name in own_namespaces(request)]
        return json_response(200, {"kind": "NamespaceNameList", "items": items})
