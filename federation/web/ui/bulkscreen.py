"""One action for several objects of a list: restart, rebalance or delete, after one plan of all of them.

It does what the page of each object does, with the rights of the user: objects to which the action does not apply, or
that he may not change, are left out and named before anything is written. Confirming computes the plan once more, and
writes only if it is what the page showed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ConfigurationError, Forbidden, NotFound
from federation.apimachinery.resources import Resource
from federation.planning.rendering.memberobject import content_hash
from federation.plans.edits import Edit, describe_object, dry_run
from federation.plans.inventory import PlanForbidden
from federation.plans.planner import Planner, apply_edits
from federation.plans.requestedchanges import RequestedChanges
from federation.scheduling.whatif.state import ObjectChange
from federation.web.ui.actions.action import Action, Form, Subject
from federation.web.ui.actions.objectactions import editable
from federation.web.ui.actionscreen import ACTIONS, check_segments, to_subject
from federation.web.ui.forms import asked_time
from federation.web.ui.planscreen import to_view
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen
from federation.web.ui.usertransport import client_of

PATH = "/ui/bulk"
BULK = ("restart", "rebalance", "delete")
_ROW = "row-"
_AT_ONCE = 8
"""Objects that are read at the same time."""
_PARTS = 5
"""Group, version, plural, namespace and name."""


@dataclass(slots=True)
class Selection:
    """The chosen objects: what is written, and what is left out for which reason."""

    edits: list[Edit] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """The result of the writes; `plan` is None for a user who may not make one: `unplanned` says why."""

    edits: Sequence[Edit]
    changes: Sequence[ObjectChange]
    fingerprint: str
    plan: Mapping[str, Any] | None
    unplanned: str = ""


def chosen_in(form: Form) -> list[str]:
    """Return the addresses of the chosen objects, each once; ConfigurationError for none or too many."""
    rows = [value for key, value in form.items() if key.startswith(_ROW) and value]
    chosen = list(dict.fromkeys(rows))
    if not chosen:
        raise ConfigurationError("Choose objects in the list first.")
    if len(chosen) > PAGE_ROWS:
        raise ConfigurationError(f"{len(chosen)} objects are chosen; at most {PAGE_ROWS} at once")
    return chosen


def action_in(form: Form) -> Action:
    """Return the action that a form asks for; ConfigurationError for one that is not offered for several objects."""
    name = form.get("do", "")
    if name not in BULK:
        raise ConfigurationError(f"{name[:50]!r} is not done for several objects at once; there are {', '.join(BULK)}")
    return ACTIONS[name]


def phrase_for(action: Action, count: int) -> str:
    """Return what the user writes to confirm an action that nobody can take back, "" for others."""
    return f"{action.name} {to_count(count, 'object')}" if action.is_final else ""


async def _select(page: Page, action: Action, form: Form) -> Selection:
    chosen, found = chosen_in(form), Selection()
    now = asked_time(page.now, form.get("at", ""))

    async def read(address: str) -> tuple[str, Subject | None, str]:
        parts = address.split("/")
        if len(parts) != _PARTS:
            raise ConfigurationError(f"{address[:100]!r} is no object of the list")
        check_segments(*parts)
        group, version, plural, namespace, name = parts
        namespace = "" if namespace == "-" else namespace
        resource = Resource("" if group == "core" else group, version, "", plural, bool(namespace))
        title = f"{plural}/{name}{f' in {namespace}' if namespace else ''}"
        if resource.group_resource == FEDERATED_CLUSTERS.group_resource:
            return title, None, "clusters have actions of their own"
        try:
            obj = await page.api.get(resource.path(namespace, name))
        except (NotFound, Forbidden) as error:
            return title, None, "you may not read it" if isinstance(error, Forbidden) else "it does not exist any more"
        return title, await to_subject(page, resource, obj, now, None if action.name == "rebalance" else {}), ""

    allowed: dict[tuple[str, str], bool] = {}
    for start in range(0, len(chosen), _AT_ONCE):
        for title, subject, why in await asyncio.gather(*map(read, chosen[start : start + _AT_ONCE])):
            if subject is None:
                found.left_out.append((title, why))
                continue
            key = (subject.resource.group_resource, subject.namespace)
            if key not in allowed:
                allowed[key] = await page.may(action.verb, subject.resource, subject.namespace)
            if not action.applies(subject):
                found.left_out.append((title, f"{action.title.lower()} does not apply to it"))
            elif not (allowed[key] or await page.may(action.verb, subject.resource, subject.namespace, subject.name)):
                found.left_out.append((title, f"you may not {action.verb} it"))
            else:
                found.edits.append(subject.delete() if action.is_final else action.to_edit(subject, form))
    return found


async def _act(page: Page, form: Form) -> str | Mapping[str, Any]:
    action = action_in(form)
    selection = await _select(page, action, form)
    shown: dict[str, Any] = {
        "action": action,
        "selection": selection,
        "rows": list(enumerate(chosen_in(form))),
        "asked_at": to_rfc3339(asked_time(page.now, form.get("at", ""))),
        "phrase": phrase_for(action, len(selection.edits)),
        "names": [describe_object(edit.resource, edit.namespace, edit.name) for edit in selection.edits],
    }
    if not selection.edits:
        return {**shown, "problem": "None of the chosen objects can be changed so."}
    host, is_to_apply = client_of(page.api), form.get("step") == "apply"
    async with page.planners.of(host, page.user) as planner:
        preview = await foresee(planner, selection.edits)
        problem = ""
        if is_to_apply and preview.fingerprint != form.get("fingerprint"):
            problem = "Nothing was done: this is no longer what you saw. Look at it again."
        elif is_to_apply and form.get("confirm", "").strip() != shown["phrase"]:
            problem = f"Nothing was done: write {shown['phrase']!r} to confirm."
        elif is_to_apply:
            await apply_edits(host, preview.edits, [change.before for change in preview.changes])
            return f"/ui/objects?done={action.name}"
    return {**shown, "problem": problem, "preview": preview, **(preview.plan or {})}


async def foresee(planner: Planner, edits: Sequence[Edit]) -> BulkPreview:
    """Return what several writes would do: a plan, or their dry runs for a user who may not make one."""
    try:
        forecast = await planner.forecast(RequestedChanges(edits=edits))
        resolved = forecast.resolved
        return BulkPreview(resolved.edits, resolved.changes, forecast.fingerprint, to_view(forecast))
    except PlanForbidden as error:
        unplanned = str(error)
    changes = [await dry_run(planner.host, edit) for edit in edits]
    states = [
        {
            "uid": (change.before or {}).get("metadata", {}).get("uid"),
            "before": change.before and editable(change.before),
            "after": change.after and editable(change.after),
        }
        for change in changes
    ]
    return BulkPreview(edits, changes, content_hash({"changes": states}), None, unplanned)


async def _load(page: Page) -> Mapping[str, Any]:
    del page
    return {"action": None}


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return []


SCREEN = Screen(PATH, "Several objects", "bulk.html", _load, _watched, is_listed=False, act=_act)
