"""One hold of the guard: what waits, what an approval lets happen, and the form that approves it.

An approval is for the version of the hold that the page showed: when more objects are held meanwhile, the API server
refuses it, and the page shows them first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.api.resources import PLACEMENT_HOLDS
from federation.apimachinery.errors import ConfigurationError, Conflict
from federation.planning.followers.abandoned import is_following
from federation.planning.guard.deletions import is_deletion
from federation.planning.guard.ledger import parse_cause
from federation.web import objectlist
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen
from federation.web.ui.usertransport import client_of

_NOTHING: Mapping[str, Any] = {"items": [], "counts": {}, "metadata": {}, "hiddenResources": []}


@dataclass(frozen=True, slots=True)
class Consequence:
    """The waiting change in a few words, the effect of an approval, and the words of its button.

    `is_final` means that nobody can undo it.
    """

    title: str
    text: str
    button: str
    is_final: bool = False


def consequence_of(spec: Mapping[str, Any]) -> Consequence:
    """Return what the approval of a hold does; `spec` is that of the PlacementHold."""
    cause, count = parse_cause(str(spec["cause"])), int(spec.get("count") or 0)
    is_one = count == 1
    them = "it" if is_one else "them"
    if is_deletion(cause):
        # The guard counts four kinds, all with a regular plural.
        what = _counted(count, cause.name)
        where = f" in namespace {cause.namespace}" if cause.namespace else ""
        text = f"{what}{where} {'is' if is_one else 'are'} deleted in all clusters, with the data in {them}."
        return Consequence(
            f"Deletion of {what}{where}", f"{text} This cannot be undone.", f"Delete {what}", is_final=True
        )
    what = _counted(count, "object")
    if is_following(cause):
        text = f"{what} {'leaves' if is_one else 'leave'} the workloads that refer to {them}."
        return Consequence(f"{what} that would leave their workloads", text, f"Let {what} leave")
    verbs = "leaves clusters, or loses" if is_one else "leave clusters, or lose"
    text = f"{what} {verbs} replicas there, because of a change of {cause}. Undo is possible for an hour."
    return Consequence(f"{what} moved by {cause}", text, f"Move {what}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


async def _load(page: Page) -> Mapping[str, Any]:
    name = page.parts["name"]
    hold = await page.api.get(PLACEMENT_HOLDS.path(name=name))
    query = {"continue": page.query["continue"]} if page.query.get("continue") else {}
    listed = await page.get_optional(objectlist.PATH, _NOTHING, **query, hold=name, limit=str(PAGE_ROWS))
    after = listed["metadata"].get("continue", "")
    leaving = sorted({place for item in listed["items"] for place in _leaving(item, name)})
    return {
        "hold": hold,
        "consequence": consequence_of(hold["spec"]),
        "listed": listed,
        "leaving": {item["namespace"] + "/" + item["name"]: _leaving(item, name) for item in listed["items"]},
        "clusters": leaving,
        "may_approve": await page.may("patch", PLACEMENT_HOLDS, name=name),
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if page.query.get("continue") else "",
    }


def _leaving(item: Mapping[str, Any], hold: str) -> Sequence[str]:
    return [cluster for held in item["held"] if held["hold"] == hold for cluster in held["clusters"]]


async def _approve(page: Page, form: Mapping[str, str]) -> str:
    reason = form.get("reason", "").strip()
    if not reason:
        raise ConfigurationError("Reason: say why these objects may go on; it is recorded with your name.")
    if not form.get("version"):
        raise ConfigurationError("The form names no version of the hold. Open the page again; nothing was approved.")
    patch = {"metadata": {"resourceVersion": form["version"]}, "spec": {"approval": {"reason": reason}}}
    try:
        await client_of(page.api).patch(PLACEMENT_HOLDS, page.parts["name"], patch)
    except Conflict as error:
        message = "The hold has changed since you opened this page. Look at it again; nothing was approved."
        raise Conflict(message) from error
    return page.path


def _watched(page: Page) -> Sequence[Collection]:
    return [(PLACEMENT_HOLDS.path(), {"fieldSelector": f"metadata.name={page.parts['name']}"})]


SCREEN = Screen("/ui/holds/{name}", "Held", "hold.html", _load, _watched, is_listed=False, act=_approve)
