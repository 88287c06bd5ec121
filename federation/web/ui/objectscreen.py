"""One object: the tree over its policy and overrides to clusters, pods and events; wanted against ready."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import Resource
from federation.planning.diagnosis.objectsummary import outcome_of
from federation.planning.federatedobject.naming import NAME_LENGTH_MAX, bounded
from federation.web import decisions, delivery, memberpods
from federation.web.ui import actionscreen
from federation.web.ui.decisionline import to_link
from federation.web.ui.objecttree import ClusterBranch, ObjectTree, grow
from federation.web.ui.podtroubles import tone_of, troubles_in
from federation.web.ui.screen import Collection, Page, Screen, problem_of

_OPEN_MAX = 4
"""Clusters whose pods are shown at once without being asked for."""
_BRANCHES = 100
"""Clusters on one page."""
_EVENTS_MAX = 20
_NONE: Mapping[str, Any] = {"items": []}


async def _load(page: Page) -> Mapping[str, Any]:
    resource, namespace, name = target_of(page)
    source = await page.api.get(resource.path(namespace, name))
    kind = str(source["kind"])
    about = {"group": resource.group, "kind": kind, "name": name}
    if namespace:
        about["namespace"] = namespace
    delivered = await page.api.get(delivery.DELIVERY_PATH, **about)
    decided = (await page.get_optional(decisions.DECISIONS_PATH, _NONE, **about, limit="1"))["items"]
    decision = decided[0] if decided else None
    tree = grow(delivered, decision, page.now, outcome_of(source))
    text = page.query.get("q", "")
    branches = [branch for branch in tree.branches if text in branch.cluster]
    pods = await _pods(page, tree, about)
    subject = await actionscreen.to_subject(page, resource, source, page.now, delivered)
    return {
        "actions": await actionscreen.offered(page, subject),
        "address": actionscreen.address_of(resource, namespace, name),
        "done": actionscreen.done_by(page),
        "source": source,
        "kind": kind,
        "tree": tree,
        "decision": decision,
        "decision_link": to_link(decision) if decision else "",
        "branches": branches[:_BRANCHES],
        "branches_more": max(0, len(branches) - _BRANCHES),
        "pods": pods,
        "pod_tone": tone_of,
        "merged": merged_name,
        "troubles": troubles_in({cluster: found["items"] for cluster, found in pods.items()}),
        "events": await _events(page, namespace, name, str(source["metadata"].get("uid") or "")),
    }


async def _pods(page: Page, tree: ObjectTree, about: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """Return the pods by cluster: of the one that the query names, else of all, or of the first that lack some."""
    named = page.query.get("cluster", "")
    counted = [branch for branch in tree.branches if branch.wanted is not None]
    shown = [branch.cluster for branch in counted if named in ("", branch.cluster)]
    if not named and len(shown) > _OPEN_MAX:
        short = [branch.cluster for branch in counted if branch.tone != "unknown" and is_short(branch)]
        shown = short[:_OPEN_MAX]

    async def read(cluster: str) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = await page.api.get(memberpods.PATH, **about, cluster=cluster)
        except ApiError as error:
            return {"items": [], "isComplete": True, "problem": problem_of(error)}
        return {**found, "problem": ""}

    return dict(zip(shown, await asyncio.gather(*map(read, shown)), strict=True))


def is_short(branch: ClusterBranch) -> bool:
    """Return whether fewer replicas are ready in the cluster than it should have."""
    return (branch.ready or 0) < (branch.wanted or 0)


def merged_name(cluster: str, pod: str) -> str:
    """Return the name that a pod of a member has on the host."""
    return bounded(f"{cluster}-{pod}", NAME_LENGTH_MAX)


async def _events(page: Page, namespace: str, name: str, uid: str) -> Sequence[Mapping[str, Any]]:
    """Return the newest Events about the object."""
    path = f"/api/v1/namespaces/{namespace or 'default'}/events"
    selector = f"involvedObject.name={name},involvedObject.uid={uid}"
    found = await page.get_optional(path, _NONE, fieldSelector=selector, limit="500")
    return sorted(found["items"], key=_time_of, reverse=True)[:_EVENTS_MAX]


def _time_of(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def target_of(page: Page) -> tuple[Resource, str, str]:
    """Return resource, namespace and name of the object that the address of a page names."""
    parts = page.parts
    group, namespace = parts["group"], parts["namespace"]
    resource = Resource("" if group == "core" else group, parts["version"], "", parts["plural"], namespace != "-")
    return resource, "" if namespace == "-" else namespace, parts["name"]


def watched_object(page: Page) -> Sequence[Collection]:
    """Return what makes a page about the object stale."""
    resource, namespace, name = target_of(page)
    about = f"involvedObject.name={name}"
    return [
        (resource.path(namespace), {"fieldSelector": f"metadata.name={name}"}),
        (f"/api/v1/namespaces/{namespace or 'default'}/events", {"fieldSelector": about}),
    ]


PATH = "/ui/objects/{group}/{version}/{plural}/{namespace}/{name}"
SCREEN = Screen(
    PATH,
    "Object",
    "object.html",
    _load,
    watched_object,
    is_listed=False,
)
