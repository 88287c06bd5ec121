"""The pods of a workload in one cluster: `/federation/v1/pods`, read from the member when somebody looks.

It needs permission to `get` the workload and to `list` pods in its namespace of the host. The control plane reads with
its own credentials and returns only what a list of pods shows: no specification, no environment.
"""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from federation.apimachinery import conditions, dotpaths
from federation.apimachinery.errors import ClusterError, NotFound, ServiceUnavailable
from federation.apimachinery.resources import PODS, Object
from federation.apimachinery.selectors import format_label_selector
from federation.apiserver.http.nonresource import AUTHORIZE
from federation.web.delivery import DeliveryView, find_authorized
from federation.web.requests import ServedKinds, json_response, to_read

PATH = "/federation/v1/pods"
_PODS_MAX = 200
_ANSWER_S = 5.0
"""Time for the member to answer; a page waits for it."""
_Text = Annotated[str, Query(min_length=1)]


def add_routes(web: FastAPI, view: DeliveryView, kinds: ServedKinds) -> None:
    """Serve pods of workloads."""

    @web.get(PATH)
    async def pods(
        request: Request, kind: _Text, name: _Text, cluster: _Text, group: str = "", namespace: str = ""
    ) -> Response:
        """Return up to 200 pods, by name; `isComplete` is false when the cluster has more."""
        found = await find_authorized(request, view, kinds, group, kind, namespace, name)
        await request.scope[AUTHORIZE]([to_read(PODS, "list", namespace)], is_path_enough=False)
        live = None if found is None else found.observed.get(cluster)
        selector = None
        if found is not None and live is not None and found.type_.paths.label_selector:
            selector = dotpaths.get(live, found.type_.paths.label_selector)
        if not isinstance(selector, Mapping) or not selector:
            return json_response(200, {"kind": "MemberPodList", "isComplete": True, "items": []})
        try:
            async with asyncio.timeout(_ANSWER_S):
                page = await view.client(cluster).list(
                    PODS, namespace, label_selector=format_label_selector(selector), limit=_PODS_MAX
                )
        except TimeoutError as error:
            raise ServiceUnavailable(f"cluster {cluster} did not answer within {_ANSWER_S:g} s") from error
        except (ClusterError, NotFound) as error:
            raise ServiceUnavailable(f"cluster {cluster} does not answer: {error}") from error
        items = [pod_row(pod) for pod in sorted(page.items, key=lambda pod: str(pod["metadata"]["name"]))]
        return json_response(200, {"kind": "MemberPodList", "isComplete": not page.continue_token, "items": items})


def pod_row(pod: Object) -> dict[str, Any]:
    """Return what `kubectl get pods` shows of a pod."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    waiting = [((each.get("state") or {}).get("waiting") or {}).get("reason") for each in containers]
    scheduled = conditions.find(status.get("conditions"), "PodScheduled") or {}
    reason = next(filter(None, waiting), None) or status.get("reason")
    if not reason and scheduled.get("status") == "False":
        reason = scheduled.get("reason")
    phase = "Terminating" if pod["metadata"].get("deletionTimestamp") else str(status.get("phase") or "Unknown")
    return {
        "name": pod["metadata"]["name"],
        "status": str(reason or phase),
        "message": str(scheduled.get("message") or status.get("message") or ""),
        "ready": sum(1 for each in containers if each.get("ready")),
        "containers": len((pod.get("spec") or {}).get("containers") or ()),
        "restarts": sum(int(each.get("restartCount") or 0) for each in containers),
        "node": str((pod.get("spec") or {}).get("nodeName") or ""),
        "created": pod["metadata"].get("creationTimestamp"),
    }
