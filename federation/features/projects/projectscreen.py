"""Projects in the web UI: those that the user may read, with their namespaces, clusters, members and state."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from federation.api.resources import PROJECTS
from federation.apimachinery import conditions
from federation.features.projects.names import READY
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen

_STATES = {"True": ("good", "In force"), "False": ("bad", "Not in force")}
"""Tone and words for the status of the condition Ready."""


async def _load(page: Page) -> Mapping[str, Any]:
    query = {"continue": page.query["continue"]} if page.query.get("continue") else {}
    listed = await page.api.get(PROJECTS.path(), limit=str(PAGE_ROWS), **query)
    after = listed["metadata"].get("continue", "")
    return {
        "projects": list(map(to_row, listed["items"])),
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if query else "",
    }


def to_row(project: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the row of a Project shows."""
    spec, status = project["spec"], project.get("status") or {}
    ready = conditions.find(status.get("conditions"), READY) or {}
    limits = (spec.get("quota") or {}).get("perNamespace") or {}
    return {
        "name": project["metadata"]["name"],
        "namespaces": sorted(spec.get("namespaces") or ()),
        "clusters": status.get("clusters") or [],
        "leaving": status.get("leaving") or [],
        "members": [
            {"role": entry["role"], "names": [_subject(each) for each in entry.get("subjects") or ()]}
            for entry in spec.get("members") or ()
        ],
        "limits": [f"{resource} {amount}" for resource, amount in sorted(limits.items())],
        "state": _STATES.get(ready.get("status", ""), ("busy", "Not known yet")),
        "message": "" if ready.get("status") == "True" else ready.get("message", ""),
    }


def _subject(subject: Mapping[str, Any]) -> str:
    namespace = subject.get("namespace")
    return f"{namespace}/{subject['name']}" if namespace else str(subject["name"])


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return [(PROJECTS.path(), {})]


SCREENS = (
    Screen(
        "/ui/projects",
        "Projects",
        "projects.html",
        _load,
        _watched,
        key="j",
        templates=Path(__file__).parent / "templates",
    ),
)
