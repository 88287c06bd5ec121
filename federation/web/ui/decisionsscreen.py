"""Decisions: the time line of all decisions that the user may read, newest first, filtered by the server."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.web import decisions
from federation.web.ui.decisionline import PATH, moves_of, to_entry, to_words
from federation.web.ui.exports import Table
from federation.web.ui.screen import Collection, Page, Screen

_ROWS = 25
"""Entries of one page; an explanation about many clusters is large."""
_FILE_ROWS = 500
"""Rows of a file: each is read with its whole explanation."""
_FILTERS = ("namespace", "kind", "name", "cluster", "outcome", "changed")
_OUTCOMES = (
    "Scheduled", "Sticky", "Deferred", "NoFeasibleCluster", "NoReplicasPlaced", "CannotDivide", "PluginFailed",
)  # fmt: skip
OUTCOMES = (("", "Any outcome"), *((outcome, to_words(outcome)) for outcome in _OUTCOMES))


async def _load(page: Page) -> Mapping[str, Any]:
    query = {key: page.query[key] for key in (*_FILTERS, "continue") if page.query.get(key)}
    listed = await page.api.get(decisions.DECISIONS_PATH, **query, part="moves", limit=str(_ROWS))
    after = listed["metadata"].get("continue", "")
    return {
        "entries": [to_entry(record) for record in listed["items"]],
        "hidden_resources": listed["hiddenResources"],
        "outcomes": OUTCOMES,
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if page.query.get("continue") else "",
    }


async def _table(page: Page) -> Table:
    query = {key: page.query[key] for key in _FILTERS if page.query.get(key)}
    listed = await page.api.get(decisions.DECISIONS_PATH, **query, part="moves", limit=str(_FILE_ROWS))
    rows = []
    for record in listed["items"]:
        entry = to_entry(record)
        moves = [f"{move.cluster}: {move.before} to {move.after}" for move in moves_of(record["explanation"])]
        about = (entry.at, entry.kind, entry.namespace, entry.name, entry.outcome, entry.cause, entry.reason)
        rows.append([*about, moves])
    columns = ("at", "kind", "namespace", "name", "outcome", "cause", "reason", "moves")
    return Table("decisions", columns, rows, not listed["metadata"].get("continue"))


def watched_decisions(page: Page) -> Sequence[Collection]:
    """Return what makes a page about decisions stale."""
    return [(FEDERATED_OBJECTS.path(page.query.get("namespace", "")), {}), (CLUSTER_FEDERATED_OBJECTS.path(), {})]


SCREEN = Screen(PATH, "Decisions", "decisions.html", _load, watched_decisions, pause_s=3.0, table=_table)
