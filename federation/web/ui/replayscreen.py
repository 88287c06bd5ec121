"""Replay: what recorded decisions would have been in another world, as charts by hour and tables by namespace and team.

The host computes it (`web/replaycomparison.py`) with the rights of the user, and nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.naturalorder import natural_key
from federation.plans.documents import parse_manifests
from federation.plans.replays import COLUMNS
from federation.web import replaycomparison
from federation.web.ui.linechart import HEIGHT, WIDTH, Line, draw_line
from federation.web.ui.screen import Page, Screen, nothing_watched

PATH = "/ui/replay"
SPANS = (("1", "Last hour"), ("6", "Last 6 hours"), ("24", "Last 24 hours"), ("168", "Last 7 days"))
_TEXT_BYTES_MAX = 256 << 10
_FIELDS = ("hours", "namespace", "without", "add", "profile", "manifests")
_MEASURES = {
    "moves": ("Replicas moved", "{:.0f}"),
    "missingReplicaMinutes": ("Missing replica-minutes", "{:.0f}"),
    "utilisation": ("Use of all CPUs", "{:.1%}"),
    "cost": ("Cost", "{:.2f}"),
    "emissionsKg": ("Emissions, kg CO₂", "{:.3f}"),
    "quotaHits": ("Refused by quotas", "{:.0f}"),
    "guardHits": ("Held by the guard", "{:.0f}"),
}


@dataclass(frozen=True, slots=True)
class Chart:
    """One number over the hours of the period, in both worlds; the totals are texts."""

    title: str
    recorded: Line
    other: Line
    total: tuple[str, str]
    first: str
    last: str


async def _load(page: Page) -> Mapping[str, Any]:
    return {"spans": SPANS, "form": {field: page.query.get(field, "") for field in _FIELDS}, "size": (WIDTH, HEIGHT)}


async def _submit(page: Page, form: Mapping[str, str]) -> Mapping[str, Any]:
    found = await page.api.post(replaycomparison.PATH, to_request(page, form))
    return {"form": dict(form), **to_view(found)}


def to_request(page: Page, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of the request that a form asks for; ConfigurationError names the field that is wrong."""
    hours, text, namespace = form.get("hours", ""), form.get("manifests", ""), form.get("namespace", "").strip()
    if hours not in dict(SPANS):
        raise ConfigurationError(f"Time: {hours!r} is not one of those offered")
    if len(text.encode()) > _TEXT_BYTES_MAX:
        raise ConfigurationError(f"Policies: more than {_TEXT_BYTES_MAX >> 10} KiB; use fedctl replay -f")
    documents = parse_manifests("Policies", text.replace("\r\n", "\n")) if text.strip() else ()
    objects = [each.manifest for each in documents]
    for manifest in objects:
        metadata = manifest.get("metadata")
        if namespace and isinstance(metadata, dict) and "Cluster" not in str(manifest.get("kind")):
            metadata.setdefault("namespace", namespace)
    return {
        "since": to_rfc3339(page.now - timedelta(hours=int(hours))),
        "namespace": namespace,
        "objects": objects,
        "withoutClusters": form.get("without", "").split(),
        "addClusters": form.get("add", "").split(),
        "profile": form.get("profile", "").strip(),
    }


def to_view(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the template for a comparison."""
    hours, total = found["byHour"], found["total"]
    charts = [
        _chart(title, form, [(hour["recorded"].get(key), hour["other"].get(key)) for hour in hours], total, key, hours)
        for key, (title, form) in _MEASURES.items()
        if _is_told(total, key)
    ]
    return {
        "found": found,
        "charts": charts,
        "headings": [_MEASURES[column.key][0] for column in _columns(total)],
        "namespaces": [(each["namespace"] or "cluster-scoped", _row(each, total)) for each in found["byNamespace"]],
        "different": [
            (each, *(_placed(each[side]) for side in ("recorded", "other"))) for each in found["different"][:50]
        ],
        "teams": [(each["project"] or "no project", _row(each, total)) for each in found.get("byTeam") or ()],
    }


def _placed(side: Mapping[str, Any]) -> str:
    """Return a placement in words, or why there is none."""
    placements: Mapping[str, int | None] = side.get("placements") or {}
    listed = (
        name if count is None else f"{name} {count}"
        for name, count in sorted(placements.items(), key=lambda each: natural_key(each[0]))
    )
    return ", ".join(listed) or str(side.get("outcome") or "")


def _is_told(total: Mapping[str, Mapping[str, float]], key: str) -> bool:
    """Return whether a number is known and not zero in both worlds."""
    return any(total[side].get(key) for side in ("recorded", "other"))


def _columns(total: Mapping[str, Mapping[str, float]]) -> list[Any]:
    """Return the columns of tables: the use of all CPUs is not divided by namespaces."""
    told = (column for column in COLUMNS if column.key in _MEASURES and _is_told(total, column.key))
    return [column for column in told if column.key != "utilisation"]


def _chart(
    title: str,
    form: str,
    pairs: Sequence[tuple[float | None, float | None]],
    total: Mapping[str, Mapping[str, float]],
    key: str,
    hours: Sequence[Mapping[str, Any]],
) -> Chart:
    highest = max((value for pair in pairs for value in pair if value is not None), default=0.0)
    recorded, other = (draw_line([pair[side] for pair in pairs], highest) for side in (0, 1))
    texts = tuple(form.format(total[side].get(key) or 0) for side in ("recorded", "other"))
    return Chart(title, recorded, other, (texts[0], texts[1]), hours[0]["hour"], hours[-1]["hour"])


def _row(each: Mapping[str, Any], total: Mapping[str, Mapping[str, float]]) -> list[tuple[str, bool]]:
    """Return the cells of a namespace: the text, and whether both worlds differ."""
    cells = []
    for column in _columns(total):
        form = _MEASURES[column.key][1]
        before, after = (form.format(each[side].get(column.key) or 0) for side in ("recorded", "other"))
        cells.append((before if before == after else f"{before} → {after}", before != after))
    return cells


SCREEN = Screen(
    PATH,
    "Replay",
    "replay.html",
    _load,
    nothing_watched,
    act=_submit,
    form_bytes_max=3 * _TEXT_BYTES_MAX + (64 << 10),
    key="e",
)
