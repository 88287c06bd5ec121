"""Serves the course of queues: `/federation/v1/queuehistory`, for those who may list ClusterJobQueues."""

from fastapi import FastAPI, Request, Response

from federation.api.resources import CLUSTER_JOB_QUEUES
from federation.apimachinery.resources import Object
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.features.queues.usagehistory import PATH, SLOT_S, QueueHistory, used_part
from federation.runtime.host import Host
from federation.web.requests import json_response, to_read


class QueueHistoryView:
    """Records the statuses of ClusterJobQueues, and serves their course to those who may list them."""

    paths = frozenset((PATH,))

    def __init__(self, host: Host) -> None:
        self._history = QueueHistory(host.clock)
        host.informers.for_resource(CLUSTER_JOB_QUEUES).add_handler(self._observe)

    def _observe(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._history.forget((old or {})["metadata"]["name"])
        elif status := new.get("status"):
            self._history.record(new["metadata"]["name"], used_part(new), float(status.get("pending") or 0))

    def add_routes(self, web: FastAPI) -> None:
        """Serve it."""

        @web.get(PATH)
        async def read(request: Request) -> Response:
            """Return the course of all queues."""
            await request.scope[AUTHORIZE]([to_read(CLUSTER_JOB_QUEUES, "list", "")], is_path_enough=False)
            return json_response(200, {"kind": "QueueHistory", "stepSeconds": SLOT_S, "queues": self._history.read()})
