"""The decisions about one object: their time line, one of them explained, and what it changed since an earlier one."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.apimachinery.errors import NotFound
from federation.scheduling import decisiontext
from federation.scheduling.decisiondiff import compare
from federation.scheduling.explanations import ClusterRow, in_force, is_in_force, rows
from federation.scheduling.triggerwords import describe_deferral
from federation.web import decisions, objectlist
from federation.web.ui.decisionline import PATH, in_force_before, to_entry, to_link
from federation.web.ui.scorechart import draw
from federation.web.ui.screen import Collection, Page, Screen

_RECORDS_MAX = 50
"""Decisions to read; the journal keeps about twenty of an object."""
_NONE = "–"  # noqa: RUF001  # a dash, as in other tables
_CLUSTERS = 40
"""Clusters to show; further ones are counted, and found by name."""


async def _load(page: Page) -> Mapping[str, Any]:
    about = _about(page)
    records = (await page.api.get(decisions.DECISIONS_PATH, **about, limit=str(_RECORDS_MAX)))["items"]
    at = page.query.get("at", "")
    position = next((number for number, record in enumerate(records) if not at or record["at"] <= at), None)
    if position is None:
        raise NotFound("The journal has no decision about this object from before that time.")
    record = records[position]
    against = page.query.get("against", "")
    before = next((each for each in records[position + 1 :] if each["at"] == against), None)
    before = before or in_force_before(records, position)
    objects = await page.api.get(
        objectlist.PATH, **{key: about[key] for key in ("kind", "name", "namespace") if key in about}
    )
    return {
        **about,
        "namespace": about.get("namespace", ""),
        "entries": [to_entry(each) for each in records],
        "position": position,
        "entry": to_entry(record),
        "record": record,
        "before": before,
        "earlier_link": to_link(before) if before else "",
        "earlier": [(each["at"], to_entry(each)) for each in records[position + 1 :]],
        "source": next((item for item in objects["items"] if _is_same(item, about)), None),
        **explained(record["explanation"], page.query.get("q", "")),
        **compared(before, record),
    }


def explained(explanation: Mapping[str, Any], text: str = "") -> dict[str, Any]:
    """Return the parts of one decision; `text` selects clusters by a part of their name."""
    listed = [row for row in rows(explanation) if decisiontext.has_data(row)]
    shown = [row for row in listed if text in row.name]
    division = explanation.get("division") or {}
    return {
        "reason": describe_deferral(str(explanation.get("reason") or "")),
        "facts": decisiontext.input_facts(explanation),
        "chart": draw(explanation, listed),
        "clusters": [_to_line(row, explanation) for row in shown[:_CLUSTERS]],
        "clusters_count": len(listed),
        "clusters_more": max(0, len(shown) - _CLUSTERS),
        "division": [
            *decisiontext.division_facts(division),
            *(
                (f"{number}. {name}", words)
                for number, (name, words) in enumerate(decisiontext.division_steps(division), 1)
            ),
        ],
        "subsets": list(decisiontext.subset_facts(division["subsets"])) if division.get("subsets") else [],
        "spread": list(decisiontext.spread_facts(explanation)),
    }


def compared(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs between two records, nothing without an earlier one."""
    if before is None:
        return {"difference": None, "changes": [], "changes_more": 0}
    found = compare(before["explanation"], after["explanation"])
    changes = sorted(found.clusters, key=lambda change: _placed(change.before) == _placed(change.after))
    return {
        "difference": found,
        "changes": [
            (
                each.name,
                _placed(each.before),
                _placed(each.after),
                _total(each.before),
                _total(each.after),
                each.changes,
            )
            for each in changes[:_CLUSTERS]
        ],
        "changes_more": max(0, len(changes) - _CLUSTERS),
    }


def _to_line(row: ClusterRow, explanation: Mapping[str, Any]) -> dict[str, Any]:
    placed, is_over = in_force(explanation), is_in_force(explanation)
    is_kept = row.name in placed and not is_over
    verdict = decisiontext.verdict(row, dict.fromkeys(row.scores, 0), {}, is_over=is_over)
    return {
        "name": row.name,
        "tone": "good" if row.name in placed else "bad" if row.rejected_by else "unknown",
        "replicas": _replicas(placed.get(row.name), is_present=row.name in placed),
        "before": _replicas(row.previous, is_present=row.was_selected),
        "why": decisiontext.reason_text(row, verdict, is_kept=is_kept),
        "scores": row.scores,
    }


def _placed(row: ClusterRow | None) -> str:
    return _NONE if row is None else _replicas(row.replicas, is_present=row.is_selected)


def _replicas(count: int | None, *, is_present: bool) -> str:
    return decisiontext.replicas_text(count, is_present=True) if is_present else _NONE


def _total(row: ClusterRow | None) -> str:
    return _NONE if row is None or row.total is None else str(row.total)


def _is_same(item: Mapping[str, Any], about: Mapping[str, str]) -> bool:
    return all(item[key] == about.get(key, "") for key in ("group", "kind", "namespace", "name"))


def _about(page: Page) -> dict[str, str]:
    parts = page.parts
    about = {"group": "" if parts["group"] == "core" else parts["group"], "kind": parts["kind"], "name": parts["name"]}
    return about if parts["namespace"] == "-" else {**about, "namespace": parts["namespace"]}


def _watched(page: Page) -> Sequence[Collection]:
    namespace = _about(page).get("namespace", "")
    events = f"/api/v1/namespaces/{namespace or 'default'}/events"
    federated = FEDERATED_OBJECTS.path(namespace) if namespace else CLUSTER_FEDERATED_OBJECTS.path()
    return [
        (federated, {}),
        (events, {"fieldSelector": f"involvedObject.name={page.parts['name']}"}),
    ]


SCREEN = Screen(
    f"{PATH}/{{group}}/{{kind}}/{{namespace}}/{{name}}",
    "Decision",
    "decision.html",
    _load,
    _watched,
    is_listed=False,
    pause_s=3.0,
)
