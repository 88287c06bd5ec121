"""A new policy from a form, with the plan of what it would do beside it, and its YAML."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import NAMESPACES
from federation.plans.edits import Edit, Verb
from federation.plans.planner import apply_edits
from federation.web.ui.actions.action import Form
from federation.web.ui.actionscreen import address_of
from federation.web.ui.bulkscreen import foresee
from federation.web.ui.clusterlist import read_visible_clusters
from federation.web.ui.policydraft import KINDS, MODES, Draft, to_draft
from federation.web.ui.screen import Collection, Page, Screen
from federation.web.ui.usertransport import client_of

PATH = "/ui/newpolicy"
_SUGGESTIONS_MAX = 500
_FIELDS = ("name", "namespace", "mode", "labels", "clusters", "clusterlabels", "most")


async def _load(page: Page) -> Mapping[str, Any]:
    empty: Mapping[str, Any] = {"items": []}
    clusters, namespaces = await asyncio.gather(
        read_visible_clusters(page),
        page.get_optional(NAMESPACES.path(), empty, limit=str(_SUGGESTIONS_MAX)),
    )
    return {
        "kinds": KINDS,
        "modes": MODES,
        "clusters": _names(clusters or ()),
        "namespaces": _names(namespaces["items"]),
        "form": {field: page.query[field] for field in _FIELDS if page.query.get(field)} | {"kind-Deployment": "1"},
    }


def _names(items: Sequence[Mapping[str, Any]]) -> list[str]:
    found = sorted((each["metadata"]["name"] for each in items), key=natural_key)
    return found[:_SUGGESTIONS_MAX]


async def _act(page: Page, form: Form) -> str | Mapping[str, Any]:
    draft = to_draft(form)
    if await _exists(page, draft):
        raise ConfigurationError(f"Name: there is a {draft.resource.kind} {draft.name} already; edit its YAML instead")
    edit = Edit("Policy", Verb.APPLY, draft.resource, draft.namespace, draft.name, draft.manifest)
    host, is_to_apply = client_of(page.api), form.get("step") == "apply"
    async with page.planners.of(host, page.user) as planner:
        preview = await foresee(planner, [edit])
        if is_to_apply and preview.fingerprint == form.get("fingerprint"):
            await apply_edits(host, preview.edits, [change.before for change in preview.changes])
            return f"/ui/objects/{address_of(draft.resource, draft.namespace, draft.name)}"
    problem = "Nothing was written: this is no longer what you saw. Look at it again." if is_to_apply else ""
    hidden = {key: value for key, value in form.items() if key in _FIELDS or key.startswith("kind-")}
    return {"problem": problem, "draft": draft, "preview": preview, "hidden": hidden, **(preview.plan or {})}


async def _exists(page: Page, draft: Draft) -> bool:
    try:
        await page.api.get(draft.resource.path(draft.namespace, draft.name))
    except NotFound:
        return False
    return True


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return []


SCREEN = Screen(PATH, "New policy", "newpolicy.html", _load, _watched, is_listed=False, within="/ui/policies", act=_act)
