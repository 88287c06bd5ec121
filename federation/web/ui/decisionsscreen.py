"""Decisions: the time line of all decisions that the user may read, newest first, filtered by the server."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.web import decisions
from federation.web.ui.decisionline import PATH, to_entry, to_words
from federation.web.ui.screen import Collection, Page, Screen

_ROWS = 25
"""Entries of one page; an explanation about many clusters is large."""
_FILTERS = ("namespace", "kind", "name", "cluster", "outcome", "changed")
_OUTCOMES = (
    "Scheduled", "Sticky", "Deferred", "NoFeasibleCluster", "NoReplicasPlaced", "CannotDivide", "PluginFailed",
)  # fmt: skip
OUTCOMES = (("", "Any outcome"), *((outcome, to_words(outcome)) for outcome in _OUTCOMES))


async def _load(page: Page) -> Mapping[str, Any]:
    query = {key: page.query[key] for key in (*_FILTERS, "continue") if page.query.get(key)}
    listed = await page.api.get(decisions.DECISIONS_PATH, **query, limit=str(_ROWS))
    after = listed["metadata"].get("continue", "")
    return {
        "entries": [to_entry(record) for record in listed["items"]],
        "hidden_resources": listed["hiddenResources"],
        "outcomes": OUTCOMES,
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if page.query.get("continue") else "",
    }


def watched_decisions(page: Page) -> Sequence[Collection]:
    """Return what makes a page about decisions stale."""
    return [(FEDERATED_OBJECTS.path(page.query.get("namespace", "")), {}), (CLUSTER_FEDERATED_OBJECTS.path(), {})]


SCREEN = Screen(PATH, "Decisions", "decisions.html", _load, watched_decisions, pause_s=3.0)
