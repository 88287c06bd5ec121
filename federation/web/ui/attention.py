"""Needs attention: what is wrong, each cause once with the number of its objects, and the objects of one cause."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from federation.api import names
from federation.api.resources import FEDERATED_ROLLOUTS, PLACEMENT_HOLDS
from federation.apimachinery import conditions
from federation.apimachinery.errors import ApiError, Forbidden
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import Object
from federation.web import memberpods, objectlist
from federation.web.ui.clustercards import concerns_of
from federation.web.ui.clusterlist import read_visible_clusters
from federation.web.ui.expiringcertificates import METRIC, expiring
from federation.web.ui.exports import Cell, Table
from federation.web.ui.holdscreen import consequence_of
from federation.web.ui.objectsscreen import to_table, watched_objects
from federation.web.ui.podtroubles import troubles_in
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen, read_all, read_optional_lists

KINDS = (
    ("attention", "All"),
    ("not-placed", "Not placed"),
    ("not-delivered", "Not delivered"),
    ("not-ready", "Not ready"),
    ("stale", "Last known state"),
    ("held", "Held"),
)
WORDS = dict(KINDS)
_STUCK = {"Failed": "bad", "Stopped": "bad", "RolledBack": "warn"}
_ENTRIES_MAX = 100
_ROLLOUTS_MAX = 500


@dataclass(frozen=True, slots=True)
class Entry:
    """One cause: `href` leads to what it is about, `count` objects have it, `samples` are some of them."""

    tone: str
    badge: str
    title: str
    href: str = ""
    text: str = ""
    count: int = 0
    key: str = ""
    samples: Sequence[Mapping[str, Any]] = ()


async def _load(page: Page) -> Mapping[str, Any]:
    state, cause = page.query.get("state") or "attention", page.query.get("cause", "")
    query = {key: page.query[key] for key in ("namespace", "continue", "cause") if page.query.get(key)}
    listed = await page.api.get(objectlist.PATH, **query, state=state, limit=str(PAGE_ROWS if cause else 1))
    after = listed["metadata"].get("continue", "")
    found: dict[str, Any] = {
        "listed": listed,
        "state": state,
        "cause": next((each for each in listed["causes"] if each["key"] == cause), None) if cause else None,
        "is_of_one_cause": bool(cause),
        "kinds": KINDS,
        "next": page.link(**{"continue": after}) if after and cause else "",
        "first": page.link(**{"continue": ""}) if page.query.get("continue") else "",
    }
    if cause:
        return found
    causes = [each for each in listed["causes"] if state in ("attention", each["attention"])]
    entries = await read_entries(page, causes, await read_visible_clusters(page) or ())
    if state == "attention":
        entries += await _certificates(page)
    return {**found, "entries": entries[:_ENTRIES_MAX], "entries_more": max(0, len(entries) - _ENTRIES_MAX)}


async def _table(page: Page) -> Table:
    state = page.query.get("state") or "attention"
    query = {key: page.query[key] for key in ("namespace", "cause") if page.query.get(key)}
    if page.query.get("cause"):
        items, is_complete = await read_all(page, objectlist.PATH, {**query, "state": state})
        return to_table(items, is_complete=is_complete)
    listed = await page.api.get(objectlist.PATH, **query, state=state, limit="1")
    causes = [each for each in listed["causes"] if state in ("attention", each["attention"])]
    clusters = await read_visible_clusters(page)
    entries = await read_entries(page, causes, clusters or (), with_pods=False)
    rows: list[list[Cell]] = [[entry.badge, entry.title, entry.text, entry.count] for entry in entries]
    return Table("attention", ("state", "cause", "text", "objects"), rows)


async def read_entries(
    page: Page,
    causes: Sequence[Mapping[str, Any]],
    clusters: Sequence[Mapping[str, Any]],
    *,
    with_pods: bool = True,
) -> list[Entry]:
    """Return the causes of objects, joined with clusters, holds and rollouts that need attention themselves.

    `with_pods` asks members what the pods of workloads that are not ready wait for.
    """
    holds, rollouts = await asyncio.gather(
        page.get_optional(PLACEMENT_HOLDS.path(), {"items": []}),
        read_optional_lists(page, FEDERATED_ROLLOUTS, page.query.get("namespace", ""), limit=str(_ROLLOUTS_MAX)),
    )
    reason = await _pod_reason(page, causes) if with_pods else ""
    is_all = (page.query.get("state") or "attention") == "attention"
    return to_entries(
        causes,
        [concern for cluster in clusters for concern in concerns_of(cluster, page.now)],
        {hold["metadata"]["name"]: hold for hold in holds["items"] if not hold["spec"].get("approval")},
        rollouts["items"][:_ROLLOUTS_MAX] if is_all and rollouts is not None else (),
        reason,
        with_others=is_all,
    )


async def _pod_reason(page: Page, causes: Sequence[Mapping[str, Any]]) -> str:
    """Return what the pods of workloads that are not ready wait for, by one cluster of each of the samples."""
    samples = [sample for each in causes if each["attention"] == "not-ready" for sample in each["samples"]]
    silent = {each["subject"] for each in causes if each["attention"] == "stale"}

    async def read(sample: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        cluster = next((name for name in sample["clusters"] if name not in silent), "")
        about = {key: sample[key] for key in ("group", "kind", "namespace", "name") if sample[key]}
        try:
            return (await page.api.get(memberpods.PATH, **about, cluster=cluster))["items"] if cluster else []
        except ApiError:
            return []

    pods = dict(enumerate(await asyncio.gather(*map(read, samples[:3]))))
    return "; ".join(trouble.words for trouble in troubles_in({str(at): rows for at, rows in pods.items()}))


def to_entries(
    causes: Sequence[Mapping[str, Any]],
    concerns: Sequence[Any],
    holds: Mapping[str, Object],
    rollouts: Sequence[Object],
    pod_reason: str,
    *,
    with_others: bool,
) -> list[Entry]:
    """Return one entry per cause, the worst first; with others: those that no object is behind, too."""
    told = {concern.cluster: concern for concern in concerns}
    entries = [_of_cause(each, told, holds, pod_reason) for each in causes]
    if with_others:
        silent = {each["subject"] for each in causes if each["attention"] == "stale"}
        held = {each["subject"] for each in causes if each["attention"] == "held"}
        entries += [
            Entry("bad", concern.kind, concern.cluster, f"/ui/fleet/{quote(concern.cluster)}", concern.text)
            for concern in concerns
            if concern.cluster not in silent or concern is not told[concern.cluster]
        ]
        entries += [_of_hold(name, hold) for name, hold in holds.items() if name not in held]
        entries += [_of_rollout(rollout) for rollout in rollouts if is_stuck(rollout)]
    return sorted(entries, key=lambda entry: (entry.tone != "bad", -entry.count, natural_key(entry.title)))


def _of_cause(
    cause: Mapping[str, Any], concerns: Mapping[str, Any], holds: Mapping[str, Object], pod_reason: str
) -> Entry:
    attention, subject, count = cause["attention"], cause["subject"], cause["count"]
    common = {
        "count": count,
        "key": cause["key"],
        "samples": cause["samples"] if count <= len(cause["samples"]) else (),
    }
    if attention == "stale":
        text = concerns[subject].text if subject in concerns else ""
        return Entry("bad", "Does not answer", subject, f"/ui/fleet/{quote(subject)}", text, count, cause["key"])
    if attention == "held":
        hold = holds.get(subject)
        title = consequence_of(hold["spec"]).title if hold is not None else cause["title"]
        href = f"/ui/holds/{quote(subject)}" if hold is not None else ""
        return Entry("warn", WORDS[attention], title, href, "waits for approval", count, cause["key"])
    if attention == "not-ready":
        return Entry("warn", WORDS[attention], pod_reason or cause["title"], **common)
    return Entry(
        "bad", WORDS[attention], cause["title"], "", "" if cause["text"] == cause["title"] else cause["text"], **common
    )


def _of_hold(name: str, hold: Object) -> Entry:
    title = consequence_of(hold["spec"]).title
    return Entry("warn", "Held", title, f"/ui/holds/{quote(name)}", "waits for approval")


def is_stuck(rollout: Object) -> bool:
    """Return whether a rollout goes on only if somebody acts."""
    status = rollout.get("status") or {}
    return status.get("state") in _STUCK or conditions.is_true(status.get("conditions"), names.ROLLOUT_PAUSED)


def _of_rollout(rollout: Object) -> Entry:
    metadata, status = rollout["metadata"], rollout["status"]
    where = f"/ui/rollouts/{quote(metadata['namespace'])}/{quote(metadata['name'])}"
    ref = rollout["spec"]["targetRef"]
    paused = conditions.find(status.get("conditions"), names.ROLLOUT_PAUSED) or {}
    text = str(status.get("failure") or paused.get("message") or status.get("message") or status["state"])
    title = f"{ref['kind']} {ref['name']} in {metadata['namespace']}"
    return Entry(_STUCK.get(status["state"], "warn"), "Rollout", title, where, text)


async def _certificates(page: Page) -> list[Entry]:
    try:
        found = expiring(await page.api.get_text("/metrics", {"name[]": METRIC}), page.now)
    except Forbidden:
        return []
    return [Entry("warn", "Certificate", text, "", remedy) for text, remedy in found]


def _watched(page: Page) -> Sequence[Collection]:
    return [*watched_objects(page), (PLACEMENT_HOLDS.path(), {})]


SCREEN = Screen("/ui/attention", "Needs attention", "attention.html", _load, _watched, pause_s=3.0, table=_table)
