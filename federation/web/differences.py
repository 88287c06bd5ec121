"""The differences between an object of a member and its wanted form, with authors: `/federation/v1/differences`.

Other than `/federation/v1/manifests` it asks the member, because caches hold no managedFields. Permission to `get` the
object of the host is enough, as there: values are told only of fields that the federation writes, and those of Secrets
are hidden.
"""

import asyncio
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response

from federation.api import names
from federation.apimachinery.errors import ApiError, ClusterError, NotFound, is_kind_missing
from federation.delivery.rules.plan import has_lost_label
from federation.planning.drift.livediff import compare_live
from federation.planning.leftovers.record import is_managed
from federation.planning.rendering.memberobject import Renderer, RenderError
from federation.planning.rendering.retention import RetentionError, is_replicas_retained
from federation.planning.status.delivery import ClusterDelivery
from federation.web.delivery import DeliveryView, Found, find_authorized, member_key, to_wanted
from federation.web.requests import ServedKinds, json_response

PATH = "/federation/v1/differences"
_WAIT_S = 5.0
"""Longest time for the member's answer; a page waits for it."""
_Text = Annotated[str, Query(min_length=1)]


class State(StrEnum):
    """How the object in a cluster compares with what it should be."""

    SAME = "same"
    DIFFERENT = "different"
    OUTDATED = "outdated"
    """Our fields are equal, but those of an earlier version may still be there."""
    MISSING = "missing"
    FOREIGN = "foreign"
    """An object of the same name is there, and the federation does not manage it."""
    LEAVING = "leaving"
    GONE = "gone"
    UNKNOWN = "unknown"
    FAILED = "failed"
    """It cannot be rendered for the cluster."""


def add_routes(web: FastAPI, view: DeliveryView, kinds: ServedKinds) -> None:
    """Serve the differences of objects."""

    @web.get(PATH)
    async def differences(
        request: Request, kind: _Text, name: _Text, cluster: _Text, group: str = "", namespace: str = ""
    ) -> Response:
        """Return how the object in a cluster differs; `state` is a `State`."""
        found = await find_authorized(request, view, kinds, group, kind, namespace, name)
        row = next((row for row in view.rows(found) if row.cluster == cluster), None) if found is not None else None
        if found is None or row is None:
            raise NotFound(f"{kind} {name} is not in cluster {cluster}", details={"name": name, "kind": kind})
        compared = await _compare(view, found, row)
        return json_response(200, {"kind": "Difference", "cluster": cluster, **compared})


async def _compare(view: DeliveryView, found: Found, row: ClusterDelivery) -> dict[str, Any]:
    """Return the state of a cluster, and the differences when there is something to compare."""
    key = member_key(found, row.cluster)
    try:
        async with asyncio.timeout(_WAIT_S):
            live = await view.client(row.cluster).get(key.resource, key.name, key.namespace)
    except (ApiError, ClusterError) as error:
        if isinstance(error, NotFound) and not is_kind_missing(error):
            return _without(State.MISSING if row.is_placed else State.GONE, row.message)
        return _without(State.UNKNOWN, str(error))
    except TimeoutError:
        return _without(State.UNKNOWN, f"the cluster did not answer within {_WAIT_S:g} s")
    if not is_managed(live) and not has_lost_label(live, ""):
        return _without(State.FOREIGN, row.message)
    if not row.is_placed:
        return _without(State.LEAVING, row.message)
    scaler = view.scaler(found, row.cluster)
    try:
        rendered = Renderer(found.federated, found.type_).render(row.cluster).object
        applied = to_wanted(found, row.cluster, live, view.record(found, row.cluster))
    except (RenderError, RetentionError) as error:
        return _without(State.FAILED, str(error))
    compared = asdict(
        compare_live(rendered, applied, {**live, "apiVersion": rendered["apiVersion"], "kind": rendered["kind"]})
    )
    state = State.SAME if row.applied == "yes" else State.OUTDATED
    return {
        "state": State.DIFFERENT if compared["different"] else state,
        "message": row.message,
        "keptBecause": _kept_because(found, scaler),
        **compared,
    }


def _without(state: State, message: str) -> dict[str, Any]:
    return {"state": state, "message": message, "keptBecause": "", "different": [], "kept": [], "managers": []}


def _kept_because(found: Found, scaler: str) -> str:
    if scaler:
        return f'HorizontalPodAutoscaler "{scaler}" in the cluster owns the replicas'
    if is_replicas_retained(found.federated):
        return f"annotation {names.RETAIN_REPLICAS} leaves the replicas to the cluster"
    return "the cluster assigns them"
