"""The screen of all actions: a form, what the write would do, and the button that does just that.

Nothing is written before the user has seen the plan, or, without permission to list what plans depend on, the dry run.
Confirming computes it once more: when that gives something else than the page showed, nothing is written and the page
shows the new one. The write is one request with the rights of the user, for the version of the object that was shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ApiError, BadRequest, Conflict, NotFound
from federation.apimachinery.nameformats import path_segment
from federation.apimachinery.resources import Resource
from federation.planning.rendering.memberobject import content_hash
from federation.plans.diffs import object_diff
from federation.plans.edits import Edit, dry_run
from federation.plans.inventory import PlanForbidden
from federation.plans.planner import Planner, apply_edits
from federation.plans.requestedchanges import RequestedChanges
from federation.scheduling.whatif.state import ObjectChange
from federation.web import delivery
from federation.web.ui.actions import clusteractions, objectactions, policyactions
from federation.web.ui.actions.action import Action, Form, Subject
from federation.web.ui.forms import asked_time
from federation.web.ui.planscreen import to_view
from federation.web.ui.screen import Collection, Page, Screen
from federation.web.ui.usertransport import client_of

ACTIONS: Mapping[str, Action] = {
    row.name: row for row in (*clusteractions.ACTIONS, *policyactions.ACTIONS, *objectactions.ACTIONS)
}
PATH = "/ui/act/{action}/{group}/{version}/{plural}/{namespace}/{name}"
_FORM_BYTES_MAX = 3 * objectactions.YAML_BYTES_MAX + (64 << 10)
"""A form encodes some characters of a manifest as three."""
_DIFF_LINES_MAX = 2_000
_EDITORS = ("lines", "yaml")
"""Fields that show the object's own content for editing: they need the object as it was when the form was opened."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The effect of a write. `plan` is None where a plan says nothing, or the user may not make one: `unplanned`."""

    change: ObjectChange
    plan: Mapping[str, Any] | None
    fingerprint: str
    unplanned: str = ""


def address_of(resource: Resource, namespace: str, name: str) -> str:
    """Return the part of an address that names an object."""
    parts = (resource.group or "core", resource.version, resource.plural, namespace or "-", name)
    return "/".join(quote(part, safe="") for part in parts)


def done_by(page: Page) -> Action | None:
    """Return the action that led to this page, None without one."""
    return ACTIONS.get(page.query.get("done", ""))


async def offered(page: Page, subject: Subject) -> Sequence[Action]:
    """Return the actions that make sense for an object and that the user may do."""
    rows = [row for row in ACTIONS.values() if row.applies(subject)]
    allowed = {
        verb: await page.may(verb, subject.resource, subject.namespace, subject.name)
        for verb in sorted({row.verb for row in rows})
    }
    return [row for row in rows if allowed[row.verb]]


def check_segments(*values: str) -> None:
    """Raise BadRequest for a part of an address that is none of a path of the API, such as `..`."""
    for value in values:
        if problems := path_segment(value):
            raise BadRequest(f"{value[:50]!r} {problems[0]}")


async def _read(page: Page, asked_at: str = "") -> tuple[Action, Subject]:
    """Return what a page is about; NotFound for an action that there is not, or not for this object."""
    parts = page.parts
    action = ACTIONS.get(parts["action"])
    if action is None:
        raise NotFound(f"there is no action {parts['action'][:50]!r}")
    check_segments(*parts.values())
    group, namespace = parts["group"], parts["namespace"]
    bare = Resource("" if group == "core" else group, parts["version"], "", parts["plural"], namespace != "-")
    namespace = "" if namespace == "-" else namespace
    obj = await page.api.get(bare.path(namespace, parts["name"]))
    resource = Resource(bare.group, bare.version, str(obj["kind"]), bare.plural, bare.namespaced)
    subject = await to_subject(page, resource, obj, asked_time(page.now, asked_at))
    if not action.applies(subject):
        raise NotFound(f"{resource.kind} {subject.name}: {action.title.lower()} does not apply to it, or not any more")
    return action, subject


async def to_subject(
    page: Page, resource: Resource, obj: Mapping[str, Any], now: datetime, delivered: Mapping[str, Any] | None = None
) -> Subject:
    """Return an object as actions see it, with its delivery, which is read unless it is given."""
    if delivered is None:
        about = {"group": resource.group, "kind": str(obj["kind"]), "name": str(obj["metadata"]["name"])}
        if namespace := obj["metadata"].get("namespace"):
            about["namespace"] = str(namespace)
        try:
            delivered = await page.api.get(delivery.DELIVERY_PATH, **about)
        except ApiError:  # its kind is not federated, or the control plane is starting
            delivered = {}
    named = Resource(resource.group, resource.version, str(obj["kind"]), resource.plural, resource.namespaced)
    return Subject(named, dict(obj), now, "budget" in delivered, delivered.get("lastMove"))


async def _load(page: Page) -> Mapping[str, Any]:
    action, subject = await _read(page)
    is_allowed = await page.may(action.verb, subject.resource, subject.namespace, subject.name)
    # The fields of a large object cost time that only who may use them should take.
    fields = action.fields(subject) if is_allowed else ()
    return {
        "action": action,
        "subject": subject,
        "fields": fields,
        "basis": content_hash(objectactions.editable(subject.obj)),
        "text": action.text(subject),
        "is_allowed": is_allowed,
        "back": back_to(subject),
    }


def back_to(subject: Subject) -> str:
    """Return the address of the page about the object."""
    if subject.resource.group_resource == FEDERATED_CLUSTERS.group_resource:
        return f"/ui/fleet/{quote(subject.name, safe='')}"
    return f"/ui/objects/{address_of(subject.resource, subject.namespace, subject.name)}"


async def _act(page: Page, form: Form) -> str | Mapping[str, Any]:
    action, subject = await _read(page, form.get("at", ""))
    is_edited = any(field.kind in _EDITORS for field in action.fields(subject))
    if is_edited and form.get("basis") != content_hash(objectactions.editable(subject.obj)):
        raise Conflict("It has changed since you opened this page. Open it again and repeat your change.")
    edit = action.to_edit(subject, form)
    host = client_of(page.api)
    is_to_apply = form.get("step") == "apply"
    async with page.planners.of(host, page.user) as planner:
        preview = await foresee(planner, edit, is_planned=action.is_planned)
        if is_to_apply and preview.fingerprint == form.get("fingerprint"):
            await apply_edits(host, [edit], [preview.change.before])
            return ("/ui/objects" if action.verb == "delete" else back_to(subject)) + f"?done={action.name}"
    lines = object_diff(preview.change.before, preview.change.after)
    return {
        "problem": "Nothing was done: this is no longer what you saw. Look at it again." if is_to_apply else "",
        "preview": preview,
        "lines": lines[:_DIFF_LINES_MAX],
        "lines_more": max(0, len(lines) - _DIFF_LINES_MAX),
        "asked_at": to_rfc3339(subject.now),
        **(preview.plan or {}),
    }


async def foresee(planner: Planner, edit: Edit, *, is_planned: bool) -> Preview:
    """Return what a write would do: its dry run, and where the user may make one, a plan."""
    unplanned = ""
    if is_planned:
        try:
            forecast = await planner.forecast(RequestedChanges(edits=[edit]))
            return Preview(forecast.resolved.changes[0], to_view(forecast), forecast.fingerprint)
        except PlanForbidden as error:
            unplanned = str(error)
    change = await dry_run(planner.host, edit)
    seen = {"uid": (change.before or {}).get("metadata", {}).get("uid")}
    seen |= {
        key: obj and objectactions.editable(obj) for key, obj in (("before", change.before), ("after", change.after))
    }
    return Preview(change, None, content_hash(seen), unplanned)


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return []


SCREEN = Screen(
    PATH,
    "Action",
    "action.html",
    _load,
    _watched,
    is_listed=False,
    act=_act,
    form_bytes_max=_FORM_BYTES_MAX,
)
