"""The graph of an object: its policy, Services, autoscalers and followers, its clusters by wave, and their pods."""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.api.resources import FEDERATED_ROLLOUTS
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, SERVICES
from federation.planning.federatedobject.naming import federated_object_name
from federation.web.ui.objectgraph import draw, sources_of, waves_of
from federation.web.ui.objectscreen import PATH as OBJECT_PATH
from federation.web.ui.objectscreen import read_object, read_pods, target_of, watched_object
from federation.web.ui.screen import Page, Screen

_CLUSTERS_MAX = 8
"""Clusters whose pods are read."""
_RELATED_MAX = "500"
_NONE: Mapping[str, Any] = {"items": []}


async def _load(page: Page) -> Mapping[str, Any]:
    found = await read_object(page)
    namespace = found.about.get("namespace", "")
    services, scalers = _NONE, _NONE
    rollout: Mapping[str, Any] = {}
    if namespace:
        resource, _, name = target_of(page)
        rollout_name = federated_object_name(name, resource.group_resource)
        services, scalers, rollout = await asyncio.gather(
            page.get_optional(SERVICES.path(namespace), _NONE, limit=_RELATED_MAX),
            page.get_optional(HORIZONTAL_POD_AUTOSCALERS.path(namespace), _NONE, limit=_RELATED_MAX),
            page.get_optional(FEDERATED_ROLLOUTS.path(namespace, rollout_name), {}),
        )
    answering = [branch for branch in found.tree.branches if branch.tone != "unknown"]
    counted = [branch.cluster for branch in answering if branch.wanted is not None]
    pods = await read_pods(page, found.about, counted[:_CLUSTERS_MAX])
    sources = sources_of(found.source, found.tree, services["items"], scalers["items"])
    rows = {cluster: answer["items"] for cluster, answer in pods.items()}
    return {
        "source": found.source,
        "tree": found.tree,
        "object_path": page.path.removesuffix("/graph"),
        "rollout": rollout,
        "graph": draw(found.source, found.tree, sources, rows, waves_of(rollout.get("status") or {})),
    }


SCREEN = Screen(f"{OBJECT_PATH}/graph", "Graph", "graph.html", _load, watched_object, is_listed=False, pause_s=3.0)
