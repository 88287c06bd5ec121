"""The clusters that run something of a namespace: `/federation/v1/clusters`, for commands about members.

It needs permission to list pods in the namespace: who may see the pods may know where they are. A role in a namespace
does not allow to list FederatedClusters, which have none.
"""

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from federation.apimachinery.resources import PODS
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.web.delivery import DeliveryView
from federation.web.requests import json_response, to_read

PATH = "/federation/v1/clusters"


def add_routes(web: FastAPI, view: DeliveryView) -> None:
    """Serve the names of clusters."""

    @web.get(PATH)
    async def clusters(request: Request, namespace: Annotated[str, Query(min_length=1)]) -> Response:
        """Return the names of the clusters where something of the namespace is placed, sorted."""
        await request.scope[AUTHORIZE]([to_read(PODS, "list", namespace)], is_path_enough=False)
        items = [{"name": name} for name in view.clusters_in(namespace)]
        return json_response(200, {"kind": "ClusterNameList", "namespace": namespace, "items": items})
