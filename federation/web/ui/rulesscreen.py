"""Rules: taints and remedies of clusters, freezes and suspensions that the user may list, and what they act on now."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import ApiError
from federation.apimachinery.nameformats import path_segment
from federation.web import objectlist
from federation.web.ui import policiesscreen
from federation.web.ui.exports import Table
from federation.web.ui.kindlists import is_filtered, read_kinds, watched_kinds
from federation.web.ui.rulerows import RESOURCES, RuleRow, sort_rows, to_row
from federation.web.ui.screen import Collection, Page, Screen

_ROWS_MAX = 200
_KINDS = (("", "All kinds"), *((resource.kind, resource.kind) for resource in RESOURCES))


async def _read(page: Page) -> tuple[list[RuleRow], list[str], bool]:
    """Return the rules that pass the filter, the kinds that the user may not list, and whether more exist."""
    found = await read_kinds(page, RESOURCES)
    rows = [to_row(resource, rule, page.now) for resource, rule in found.objects]
    return sort_rows(rows, page.query.get("sort", "")), found.hidden, found.has_more


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
        "is_filtered": is_filtered(page),
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
    return watched_kinds(page, RESOURCES)


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
