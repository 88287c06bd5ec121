"""One object: the tree over its policy and overrides to clusters, pods and events; wanted against ready."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from federation.web.ui.policypart import read_policy
from federation.web.ui.rulepart import read_rule
from federation.web.ui.screen import Collection, Page, Screen, problem_of

_OPEN_MAX = 4
"""Clusters whose pods are shown at once without being asked for."""
_BRANCHES = 100
"""Clusters on one page."""
_EVENTS_MAX = 20
_NONE: Mapping[str, Any] = {"items": []}


@dataclass(frozen=True, slots=True)
class Shown:
    """An object with its delivery and newest decision; `about` names it in requests."""

    source: Mapping[str, Any]
    about: Mapping[str, str]
    delivered: Mapping[str, Any]
    decision: Mapping[str, Any] | None
    tree: ObjectTree


async def read_object(page: Page) -> Shown:
    """Return the object that the address of a page names."""
    resource, namespace, name = target_of(page)
    source = await page.api.get(resource.path(namespace, name))
    about = {"group": resource.group, "kind": str(source["kind"]), "name": name}
    if namespace:
        about["namespace"] = namespace
    delivered = await page.api.get(delivery.DELIVERY_PATH, **about)
    decided = (await page.get_optional(decisions.DECISIONS_PATH, _NONE, **about, limit="1"))["items"]
    decision = decided[0] if decided else None
    return Shown(source, about, delivered, decision, grow(delivered, decision, page.now, outcome_of(source)))


async def _load(page: Page) -> Mapping[str, Any]:
    resource, namespace, name = target_of(page)
    found = await read_object(page)
    source, tree, decision = found.source, found.tree, found.decision
    text = page.query.get("q", "")
    branches = [branch for branch in tree.branches if text in branch.cluster]
    pods = await read_pods(page, found.about, _opened(page, tree))
    subject = await actionscreen.to_subject(page, resource, source, page.now, found.delivered)
    return {
        "actions": await actionscreen.offered(page, subject),
        "address": actionscreen.address_of(resource, namespace, name),
        "done": actionscreen.done_by(page),
        "policy": await read_policy(page, resource, source),
        "rule": await read_rule(page, resource, source),
        "source": source,
        "kind": source["kind"],
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


def _opened(page: Page, tree: ObjectTree) -> Sequence[str]:
    """Return the clusters whose pods are shown: the one that the query names, else all, or the first that lack some."""
    named = page.query.get("cluster", "")
    counted = [branch for branch in tree.branches if branch.wanted is not None]
    shown = [branch.cluster for branch in counted if named in ("", branch.cluster)]
    if not named and len(shown) > _OPEN_MAX:
        short = [branch.cluster for branch in counted if branch.tone != "unknown" and is_short(branch)]
        shown = short[:_OPEN_MAX]
    return shown


async def read_pods(page: Page, about: Mapping[str, str], clusters: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the pods of an object in clusters, each with the `problem` of reading them."""

    async def read(cluster: str) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = await page.api.get(memberpods.PATH, **about, cluster=cluster)
        except ApiError as error:
            return {"items": [], "isComplete": True, "problem": problem_of(error)}
        return {**found, "problem": ""}

    return dict(zip(clusters, await asyncio.gather(*map(read, clusters)), strict=True))


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
