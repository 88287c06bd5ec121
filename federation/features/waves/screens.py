"""Rollouts in waves: all of them, and one with its waves, gates, clusters, and buttons to steer it.

The buttons write what `fedctl rollout approve|pause|resume|abort` writes. Approval and abortion name the revision that
the page showed, so they never touch a later rollout.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from federation.api.resources import FEDERATED_ROLLOUTS
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.nameformats import path_segment
from federation.planning.waves.rolloutstatus import waiting_wave
from federation.planning.waves.waverecord import Phase
from federation.planning.waves.wishes import (
    check_reason,
    override_reason,
    read_wishes,
    to_abortion,
    to_approval,
    to_pause,
    to_return,
)
from federation.web.ui.exports import Table
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen, read_all, read_lists
from federation.web.ui.usertransport import client_of

TONES = {
    "Complete": "good",
    "Progressing": "busy",
    "Soaking": "busy",
    "WaitingForApproval": "warn",
    "Paused": "warn",
    "Pending": "unknown",
    "RolledBack": "warn",
    "RollingBack": "warn",
    "Stopped": "bad",
    "Failed": "bad",
}
_CLUSTERS = 200
"""Clusters of one rollout to show."""


async def _load_all(page: Page) -> Mapping[str, Any]:
    query = {"continue": page.query["continue"]} if page.query.get("continue") else {}
    listed: Mapping[str, Any] = {"items": [], "metadata": {}}
    if not path_segment(_namespace(page)):  # no other text is a namespace, and it becomes a part of an address
        listed = await read_lists(page, FEDERATED_ROLLOUTS, _namespace(page), limit=str(PAGE_ROWS), **query)
    after = listed["metadata"].get("continue", "")
    return {
        "rollouts": listed["items"],
        "tones": TONES,
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if query else "",
    }


async def _table(page: Page) -> Table:
    rows, is_complete = [], True
    if not path_segment(_namespace(page)):
        items, is_complete = await read_all(page, FEDERATED_ROLLOUTS.path(_namespace(page)), {})
        for item in items:
            metadata, ref, state = item["metadata"], item["spec"]["targetRef"], item.get("status") or {}
            about = (metadata["namespace"], metadata["name"], ref["kind"], ref["name"])
            rows.append([*about, str(state.get("state") or ""), str(state.get("message") or "")])
    return Table("rollouts", ("namespace", "name", "kind", "workload", "state", "message"), rows, is_complete)


def _namespace(page: Page) -> str:
    return page.query.get("namespace", "").strip()


async def _load_one(page: Page) -> Mapping[str, Any]:
    namespace, name = page.parts["namespace"], page.parts["name"]
    rollout = await page.api.get(FEDERATED_ROLLOUTS.path(namespace, name))
    state = rollout.get("status") or {}
    return {
        "rollout": rollout,
        "state": state,
        "tones": TONES,
        "waiting": waiting_wave(state),
        "is_progressing": state.get("state") == Phase.PROGRESSING,
        "has_stopped": state.get("state") == Phase.STOPPED,
        "override": override_reason(read_wishes(rollout["spec"]), int(state.get("revision") or 0)),
        "clusters": (state.get("clusters") or [])[:_CLUSTERS],
        "may_steer": await page.may("patch", FEDERATED_ROLLOUTS, namespace, name),
    }


async def _steer(page: Page, form: Mapping[str, str]) -> str:
    spec = to_spec(form)
    name, namespace = page.parts["name"], page.parts["namespace"]
    await client_of(page.api).patch(FEDERATED_ROLLOUTS, name, {"spec": spec}, namespace=namespace)
    return page.path


def to_spec(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the rollout that a button writes; ConfigurationError for anything but our buttons."""
    action, revision, wave = (form.get(field, "") for field in ("do", "revision", "wave"))
    if action in ("pause", "resume"):
        return to_pause(is_paused=action == "pause")
    if not (revision.isascii() and revision.isdecimal()) or len(revision) > 18:
        raise ConfigurationError("The form names no revision of the rollout. Open the page again.")
    if action == "abort":
        return to_abortion(int(revision))
    if action == "rollback":
        return to_return(int(revision))
    if action == "approve" and wave:
        reason = form.get("reason", "").strip()
        check_reason(form.get("failure", ""), reason)
        return to_approval(int(revision), wave, reason)
    raise ConfigurationError("The form asks for nothing that a rollout can do. Open the page again.")


def _watched_all(page: Page) -> Sequence[Collection]:
    namespace = _namespace(page)
    return [] if path_segment(namespace) else [(FEDERATED_ROLLOUTS.path(namespace), {})]


def _watched_one(page: Page) -> Sequence[Collection]:
    parts = page.parts
    return [(FEDERATED_ROLLOUTS.path(parts["namespace"]), {"fieldSelector": f"metadata.name={parts['name']}"})]


_FOLDER = Path(__file__).parent / "templates"
SCREENS = (
    Screen("/ui/rollouts", "Rollouts", "rollouts.html", _load_all, _watched_all, templates=_FOLDER, table=_table),
    Screen(
        "/ui/rollouts/{namespace}/{name}",
        "Rollout",
        "rollout.html",
        _load_one,
        _watched_one,
        is_listed=False,
        act=_steer,
        templates=_FOLDER,
    ),
)
