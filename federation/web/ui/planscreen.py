"""Plan: what manifests, or a cordon, drain or taint of a cluster, would do; and the button that applies just that.

A plan is computed as `fedctl plan` computes it, with the rights of the user. Applying it computes it once more: when
that gives something else than the page showed, nothing is applied and the page shows the new plan.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.naturalorder import natural_key
from federation.client.client import Client
from federation.planning.clusters.taintedits import apply_edits as apply_taints
from federation.planning.clusters.taintedits import cordoned, drained, parse_edit, uncordoned
from federation.plans.diffs import to_diff
from federation.plans.documents import parse_manifests
from federation.plans.edits import Edit, Verb
from federation.plans.planner import Forecast, apply_edits
from federation.plans.requestedchanges import RequestedChanges
from federation.scheduling.whatif.planresult import MemberPlan, ObjectPlan
from federation.web.ui.clusterlist import read_visible_clusters
from federation.web.ui.forms import asked_time
from federation.web.ui.screen import Collection, Page, Screen
from federation.web.ui.usertransport import client_of

ACTIONS = (
    ("", "Nothing"),
    ("drain", "Drain: move everything away"),
    ("cordon", "Cordon: no new replicas"),
    ("uncordon", "Uncordon: end cordon and drain"),
    ("taint", "Taint"),
)
_TEXT_BYTES_MAX = 1 << 20
_FORM_BYTES_MAX = 3 * _TEXT_BYTES_MAX + (64 << 10)
"""A form encodes some characters of a manifest as three."""
_DOCUMENTS_MAX = 200
OBJECTS_MAX = 50
ROWS_MAX = 20
"""Objects, and clusters of one object, to show; the totals count all."""
_FIELDS = ("manifests", "namespace", "cluster", "action", "taint")


async def _load(page: Page) -> Mapping[str, Any]:
    listed = await read_visible_clusters(page)
    return {
        "clusters": sorted((cluster["metadata"]["name"] for cluster in listed or ()), key=natural_key),
        "actions": ACTIONS,
        "form": {field: page.query[field] for field in _FIELDS if page.query.get(field)},
    }


async def _submit(page: Page, form: Mapping[str, str]) -> Mapping[str, Any]:
    host = client_of(page.api)
    asked_at = asked_time(page.now, form.get("at", ""))
    requested = await to_changes(host, form, asked_at)
    async with page.planners.of(host, page.user) as planner:
        forecast = await planner.forecast(requested)
        is_to_apply = form.get("step") == "apply"
        if is_to_apply and forecast.fingerprint == form.get("fingerprint"):
            await apply_edits(host, forecast.resolved.edits, [each.before for each in forecast.resolved.changes])
            return {"applied": list(map(str, forecast.resolved.edits)), "form": {}}
    problem = "Nothing was applied: this is no longer the plan that you saw. Look at it again." if is_to_apply else ""
    return {"problem": problem, "asked_at": to_rfc3339(asked_at), **to_view(forecast)}


async def to_changes(host: Client, form: Mapping[str, str], asked_at: datetime) -> RequestedChanges:
    """Return what a form asks for; ConfigurationError names the field that is wrong."""
    text, action = form.get("manifests", ""), form.get("action", "")
    if len(text.encode()) > _TEXT_BYTES_MAX:
        raise ConfigurationError(f"Manifests: more than {_TEXT_BYTES_MAX >> 10} KiB; plan them in parts")
    documents = list(parse_manifests("Manifests", text.replace("\r\n", "\n"))) if text.strip() else []
    if len(documents) > _DOCUMENTS_MAX:
        raise ConfigurationError(f"Manifests: {len(documents)} objects; plan at most {_DOCUMENTS_MAX} at once")
    edits = [await _cluster_edit(host, form, asked_at)] if action else []
    if not documents and not edits:
        raise ConfigurationError("Paste a manifest, or choose what happens to a cluster.")
    return RequestedChanges(documents, namespace=form.get("namespace", "").strip() or "default", edits=edits)


async def _cluster_edit(host: Client, form: Mapping[str, str], asked_at: datetime) -> Edit:
    """Return the write that changes the taints of a cluster."""
    action, name = form["action"], form.get("cluster", "").strip()
    if not name:
        raise ConfigurationError("Cluster: enter the name of the cluster")
    try:
        cluster = await host.get(FEDERATED_CLUSTERS, name)
    except NotFound as error:
        raise ConfigurationError(f"Cluster: there is no cluster {name!r}") from error
    present = (cluster.get("spec") or {}).get("taints") or []
    match action:
        case "drain":
            taints = drained(present, asked_at)
        case "cordon":
            taints = cordoned(present, asked_at)
        case "uncordon":
            taints = uncordoned(present)
        case "taint":
            texts = form.get("taint", "").split()
            if not texts:
                raise ConfigurationError("Taint: write key=value:Effect, or key- to remove one")
            taints = apply_taints(present, map(parse_edit, texts), asked_at, overwrite=True)
        case _:
            raise ConfigurationError(f"Change of the cluster: {action!r} is not one of those offered")
    if taints == present:
        raise ConfigurationError(f"Cluster: {action} changes nothing about {name}")
    return Edit(f"Cluster {name}", Verb.MERGE, FEDERATED_CLUSTERS, "", name, {"spec": {"taints": taints or None}})


def to_view(forecast: Forecast) -> dict[str, Any]:
    """Return the variables of the template for a plan."""
    plan = forecast.plan
    changed = plan.changed
    return {
        "plan": plan,
        "counts": plan.summary(),
        "objects": [(obj, title_of(obj), _rows(obj), diffs_of(obj)) for obj in changed[:OBJECTS_MAX]],
        "more": max(0, len(changed) - OBJECTS_MAX),
        "unchanged": [obj for obj in plan.unchanged if obj.reason or obj.problems or obj.unplaced][:OBJECTS_MAX],
        "edits": forecast.resolved.edits,
        "fingerprint": forecast.fingerprint,
    }


def title_of(obj: ObjectPlan) -> str:
    """Return what happens to an object in one or two words."""
    if obj.action == "change":
        return "Rescheduled" if obj.is_placed_otherwise else "Content changes"
    return {"create": "Created", "delete": "Deleted", "withdraw": "Removed from all clusters"}.get(obj.action, "")


def _rows(obj: ObjectPlan) -> Sequence[MemberPlan]:
    """Return the clusters that change, those with most replicas first."""
    changed = [row for row in obj.rows if row.is_changed]
    return sorted(changed, key=lambda row: (-abs(row.delta), natural_key(row.cluster)))[:ROWS_MAX]


def diffs_of(obj: ObjectPlan) -> list[tuple[str, list[str]]]:
    """Return each distinct diff of an object's manifests with the clusters that it is for."""
    clusters: dict[tuple[str, ...], list[str]] = {}
    for row in obj.rows:
        if row.is_changed and row.before is not None and row.after is not None and not row.after.error:
            clusters.setdefault(tuple(to_diff(row)), []).append(row.cluster)
    return [(", ".join(names), list(lines)) for lines, names in list(clusters.items())[:3] if lines]


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return []


SCREEN = Screen("/ui/plan", "Plan", "plan.html", _load, _watched, act=_submit, form_bytes_max=_FORM_BYTES_MAX)
