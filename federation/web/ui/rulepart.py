"""The part of an object's page that a rule has in place of the tree: what it acts on now, and its manifest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import Resource
from federation.planning.freezes.names import FREEZE_EXCEPTIONS
from federation.web import objectlist
from federation.web.ui.policypart import spec_text
from federation.web.ui.rulerows import RESOURCES, RuleRow, holds_objects, to_row
from federation.web.ui.screen import PAGE_ROWS, Page


@dataclass(frozen=True, slots=True)
class RulePart:
    """A rule with the objects that wait for it, of those that the user may list, and its spec as YAML.

    `exceptions` are the objects that a freeze does not hold.
    """

    row: RuleRow
    holds: bool
    objects: tuple[Mapping[str, Any], ...]
    hidden: tuple[str, ...]
    has_more: bool
    exceptions: str
    text: str


async def read_rule(page: Page, resource: Resource, rule: Mapping[str, Any]) -> RulePart | None:
    """Return the part about a rule, None for any other object."""
    known = next((each for each in RESOURCES if each.group_resource == resource.group_resource), None)
    if known is None:
        return None
    row, found = to_row(known, rule, page.now), _NONE
    if holds_objects(known):
        within = {"namespace": row.namespace} if row.namespace else {}
        try:
            found = await page.api.get(objectlist.PATH, heldBy=row.key, limit=str(PAGE_ROWS), **within)
        except ApiError:  # the control plane is starting
            found = _NONE
    return RulePart(
        row,
        holds_objects(known),
        tuple(found["items"]),
        tuple(found["hiddenResources"]),
        bool(found["metadata"].get("continue")),
        str((rule["metadata"].get("annotations") or {}).get(FREEZE_EXCEPTIONS) or ""),
        spec_text(rule),
    )


_NONE: Mapping[str, Any] = {"items": [], "hiddenResources": [], "metadata": {}}
