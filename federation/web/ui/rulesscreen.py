"""Rules: taints and remedies of clusters, freezes and suspensions that the user may list, and what they act on now."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import ApiError, Forbidden, NotFound
from federation.apimachinery.nameformats import path_segment
from federation.apimachinery.resources import Resource
from federation.web import objectlist
from federation.web.ui import policiesscreen
from federation.web.ui.exports import Table
from federation.web.ui.rulerows import RESOURCES, RuleRow, sort_rows, to_row
from federation.web.ui.screen import Collection, Page, Screen

_READ_MAX = 500
"""Rules of one kind that are read."""
_ROWS_MAX = 200
_KINDS = (("", "All kinds"), *((resource.kind, resource.kind) for resource in RESOURCES))


async def _read(page: Page) -> tuple[list[RuleRow], list[str], bool]:
    """Return the rules that pass the filter, the kinds that the user may not list, and whether more exist."""
    namespace, kind = page.query.get("namespace", "").strip(), page.query.get("kind", "")
    if namespace and path_segment(namespace):  # no other text is a namespace, and it becomes a part of an address
        return [], [], False
    resources = [each for each in RESOURCES if kind in ("", each.kind) and (each.namespaced or not namespace)]

    async def read(resource: Resource) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = await page.api.get(resource.path(namespace), limit=str(_READ_MAX))
        except (Forbidden, NotFound):
            return None
        return found

    answers = await asyncio.gather(*map(read, resources))
    rows = [
        to_row(resource, rule, page.now)
        for resource, answer in zip(resources, answers, strict=True)
        for rule in (answer or {"items": ()})["items"]
    ]
    text = page.query.get("name", "")
    hidden = [each.group_resource for each, answer in zip(resources, answers, strict=True) if answer is None]
    has_more = any(answer is not None and answer["metadata"].get("continue") for answer in answers)
    return sort_rows([row for row in rows if text in row.name], page.query.get("sort", "")), hidden, has_more


async def _held(page: Page) -> Mapping[str, int]:
    """Return how many of the objects that the user may list wait for each rule, by the rule's key."""
    namespace = page.query.get("namespace", "").strip()
    within = {} if not namespace or path_segment(namespace) else {"namespace": namespace}
    try:
        listed = await page.api.get(objectlist.PATH, countBy="heldBy", limit="1", **within)
    except ApiError:  # the control plane is starting
        return {}
    held: Mapping[str, int] = listed["countsByHolding"]
    return held


async def _load(page: Page) -> Mapping[str, Any]:
    rows, hidden, has_more = await _read(page)
    return {
        "rows": rows[:_ROWS_MAX],
        "count": len(rows),
        "held": await _held(page) if rows else {},
        "kinds": _KINDS,
        "hidden_resources": hidden,
        "has_more": has_more or len(rows) > _ROWS_MAX,
        "is_filtered": any(page.query.get(field) for field in ("name", "namespace", "kind")),
    }


async def _table(page: Page) -> Table:
    rows, _, has_more = await _read(page)
    columns = ("kind", "namespace", "name", "scope", "does", "state", "problem", "until", "next", "owner", "reason")
    held = await _held(page)
    cells = [
        [*(getattr(row, column) for column in columns), [each.name for each in row.clusters], held.get(row.key, 0)]
        for row in rows
    ]
    return Table("rules", (*columns, "clusters", "waiting"), cells, not has_more)


def _watched(page: Page) -> Sequence[Collection]:
    namespace = page.query.get("namespace", "").strip()
    namespace = "" if path_segment(namespace) else namespace
    return [(each.path(namespace if each.namespaced else ""), {}) for each in RESOURCES]


SCREEN = Screen(
    "/ui/rules",
    "Rules",
    "rules.html",
    _load,
    _watched,
    is_listed=False,
    pause_s=3.0,
    poll_s=15.0,
    table=_table,
    within=policiesscreen.PATH,
)
