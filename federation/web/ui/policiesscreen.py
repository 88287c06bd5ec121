"""Policies: propagation and override policies of all namespaces that the user may list, and the objects of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.api.resources import POLICIES
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import Resource
from federation.planning.waves.policychanges import record_of
from federation.planning.waves.waverecord import Phase
from federation.web.ui.actionscreen import address_of
from federation.web.ui.exports import Table
from federation.web.ui.kindlists import is_filtered, read_kinds, watched_kinds
from federation.web.ui.policytext import describe_overrides, describe_propagation, describe_selectors
from federation.web.ui.screen import Collection, Page, Screen

PATH = "/ui/policies"
ROWS_MAX = 200
_SORTS = ("name", "kind", "namespace", "objects")
KINDS = (("", "All kinds"), *((resource.kind, resource.kind) for resource in POLICIES))


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy: what it selects, what it does, and how many objects it applies to."""

    kind: str
    namespace: str
    name: str
    href: str
    selects: str
    does: str
    objects: int
    created: str


async def read_rows(page: Page) -> tuple[list[PolicyRow], list[str], bool]:
    """Return the policies that pass the filter, the kinds that the user may not list, and whether more exist."""
    found = await read_kinds(page, POLICIES)
    rows = [to_row(resource, policy) for resource, policy in found.objects]
    return sort_rows(rows, page.query.get("sort", "")), found.hidden, found.has_more


def to_row(resource: Resource, policy: Mapping[str, Any]) -> PolicyRow:
    """Return the row of a policy."""
    metadata = policy["metadata"]
    spec = policy.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
    count = (policy.get("status") or {}).get("refCount")
    return PolicyRow(
        resource.kind,
        namespace,
        name,
        f"/ui/objects/{address_of(resource, namespace, name)}",
        describe_selectors(spec),
        (describe_overrides(spec) if "Override" in resource.kind else describe_propagation(spec)) + _change(policy),
        count if isinstance(count, int) else 0,
        str(metadata.get("creationTimestamp") or ""),
    )


def _change(policy: Mapping[str, Any]) -> str:
    """Return the state of a change in waves that is not complete, for the end of a sentence."""
    record = record_of(policy)
    return "" if record is None or record.phase is Phase.COMPLETE else f"; change {record.revision}: {record.phase}"


def sort_rows(rows: Sequence[PolicyRow], sort: str) -> list[PolicyRow]:
    """Return the rows in the order of a column, turned around by a `-`; by namespace, kind and name without one."""
    usual = sorted(
        rows, key=lambda row: (row.namespace == "", natural_key(row.namespace), row.kind, natural_key(row.name))
    )
    key = sort.removeprefix("-")
    if key not in _SORTS:
        return usual
    return sorted(
        usual,
        key=lambda row: row.objects if key == "objects" else natural_key(str(getattr(row, key))),
        reverse=sort.startswith("-"),
    )


async def _load(page: Page) -> Mapping[str, Any]:
    rows, hidden, has_more = await read_rows(page)
    return {
        "rows": rows[:ROWS_MAX],
        "count": len(rows),
        "kinds": KINDS,
        "hidden_resources": hidden,
        "has_more": has_more or len(rows) > ROWS_MAX,
        "is_filtered": is_filtered(page),
    }


async def _table(page: Page) -> Table:
    rows, _, has_more = await read_rows(page)
    columns = ("kind", "namespace", "name", "selects", "does", "objects", "created")
    return Table("policies", columns, [[getattr(row, column) for column in columns] for row in rows], not has_more)


def _watched(page: Page) -> Sequence[Collection]:
    return watched_kinds(page, POLICIES)


SCREEN = Screen(PATH, "Policies", "policies.html", _load, _watched, pause_s=3.0, key="y", table=_table)
