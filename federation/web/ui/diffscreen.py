"""Live diff: for each cluster of an object, what the member has against what it should have, and who changed it."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.apimachinery.errors import ApiError
from federation.web import delivery, differences
from federation.web.ui.objectscreen import PATH, target_of, watched_object
from federation.web.ui.screen import Page, Screen, problem_of
from federation.web.ui.waits import describe_drift

_OPEN_MAX = 4
"""Clusters that are compared at once without being asked for: each costs a request to the member."""
_STATES = {
    "same": ("good", "As wanted"),
    "different": ("bad", "Different"),
    "outdated": ("busy", "Earlier version"),
    "missing": ("bad", "Not there"),
    "foreign": ("bad", "Not managed"),
    "leaving": ("busy", "Leaving"),
    "gone": ("good", "Gone"),
    "unknown": ("unknown", "Unknown"),
    "failed": ("bad", "Cannot be rendered"),
}


async def _load(page: Page) -> Mapping[str, Any]:
    resource, namespace, name = target_of(page)
    source = await page.api.get(resource.path(namespace, name))
    kind = str(source["kind"])
    about = {"group": resource.group, "kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}
    rows = (await page.api.get(delivery.DELIVERY_PATH, **about))["clusters"]
    named, text = page.query.get("cluster", ""), page.query.get("q", "")
    matching = [row for row in rows if (row["cluster"] == named if named else text in row["cluster"])]
    opened = matching[:_OPEN_MAX]
    found = await asyncio.gather(*(_read(page, about, row["cluster"]) for row in opened))
    return {
        "source": source,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "object_path": page.path.removesuffix("/diff"),
        "clusters": [to_panel(row, each, page.now) for row, each in zip(opened, found, strict=True)],
        "others": [row["cluster"] for row in rows if row not in opened],
        "count": len(rows),
    }


async def _read(page: Page, about: Mapping[str, str], cluster: str) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = await page.api.get(differences.PATH, **about, cluster=cluster)
    except ApiError as error:
        return {"state": "unknown", "message": problem_of(error)}
    return found


def to_panel(row: Mapping[str, Any], found: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return one cluster as it is shown, from its row of the delivery and its differences."""
    tone, state = _STATES[found["state"]]
    drift = row.get("drift")
    return {
        **found,
        "cluster": row["cluster"],
        "tone": tone,
        "words": state,
        "drift": describe_drift(drift, now) if drift else "",
    }


SCREEN = Screen(f"{PATH}/diff", "Differences", "diff.html", _load, watched_object, is_listed=False, poll_s=5.0)
