"""The history of the fleet over the last hours: `/federation/v1/history`, from the memory of this process.

It needs permission to list FederatedClusters; series about objects need the same for FederatedObjects in all
namespaces. With several replicas each one answers with what it has seen since its start.
"""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS
from federation.apimachinery.clock import to_rfc3339
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.runtime.fleethistory import Counter, FleetHistory, Gauge
from federation.web.requests import json_response, may_list, to_read

PATH = "/federation/v1/history"
HOURS_MIN, HOURS_MAX = 0.25, 6.0
POINTS_MAX = 1440
_OF_OBJECTS: frozenset[str] = frozenset(
    (
        Gauge.OBJECTS_DELIVERED,
        Gauge.OBJECTS_UNDERWAY,
        Gauge.OBJECTS_SILENT,
        Gauge.OBJECTS_FAILING,
        Gauge.REPLICAS_UNPLACED,
        *Counter,
    )
)


class HistoryView:
    """Serves the history of this process."""

    paths = frozenset((PATH,))

    def __init__(self, history: FleetHistory) -> None:
        self._history = history

    def add_routes(self, web: FastAPI) -> None:
        """Serve it."""
        history = self._history

        @web.get(PATH)
        async def read(
            request: Request,
            hours: Annotated[float, Query(ge=HOURS_MIN, le=HOURS_MAX)] = HOURS_MAX,
            points: Annotated[int, Query(ge=1, le=POINTS_MAX)] = 120,
        ) -> Response:
            """Return the series of the last hours, and what happened to clusters, newest first."""
            needed = [to_read(FEDERATED_CLUSTERS, "list", "")]
            await request.scope[AUTHORIZE](needed, is_path_enough=False)
            with_objects = await may_list(request, FEDERATED_OBJECTS, "")
            span = timedelta(hours=hours)
            found = history.read(span, points)
            body: dict[str, Any] = {
                "kind": "FleetHistory",
                "end": to_rfc3339(found.end),
                "stepSeconds": found.step_s,
                "ageSeconds": history.age_s,
                "hiddenResources": [] if with_objects else [FEDERATED_OBJECTS.group_resource],
                "series": {
                    name: values for name, values in found.series.items() if with_objects or name not in _OF_OBJECTS
                },
                "incidents": [
                    {"at": to_rfc3339(each.at), "cluster": each.cluster, "what": each.what, "text": each.text}
                    for each in history.incidents(found.end - span)
                ],
            }
            return json_response(200, body)
