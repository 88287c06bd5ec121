"""The definition of a screen: one module with a `SCREEN`, and one template of the same name.

A screen loads its data through the API with the rights of the user and names the collections whose changes make it
stale; `uiapp.py` does the rest: log-in, headers, errors, live updates. A leaf feature names its screens in its record.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from federation.apimachinery.errors import FederationError, Forbidden, NotFound
from federation.apimachinery.resources import Resource
from federation.plans.planner import Planners
from federation.web import ownnamespaces
from federation.web.ui.exports import ROWS_MAX, Table
from federation.web.ui.forms import SMALL_BYTES_MAX
from federation.web.ui.rendering import TEMPLATES
from federation.web.ui.userapi import UserAPI

_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_ACCESS_REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
PAGE_ROWS = 50
"""Rows of one page of a list."""


@dataclass(frozen=True, slots=True)
class Page:
    """One request for a screen: parameters of path and query, the user's API and the time."""

    api: UserAPI
    path: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    now: datetime
    planners: Planners
    user: str = ""
    takes_agents: bool = True
    """Whether agents of clusters can register; on an existing API server they cannot."""

    def link(self, **changes: str) -> str:
        """Return the page's own address with some parameters of the query changed; "" removes one.

        `done`, what led to the page, is told once; an export is no state of a page.
        """
        query = {
            key: value for key, value in {**self.query, **changes}.items() if value and key not in ("done", "export")
        }
        return f"{self.path}?{urlencode(query)}" if query else self.path

    def export_link(self, format_: str) -> str:
        """Return the address of the whole list as a file."""
        address = self.link(**{"continue": "", "from": ""})
        return f"{address}{'&' if '?' in address else '?'}export={format_}"

    async def may(
        self, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
    ) -> bool:
        """Return whether the user may do this, to show a button or the reason why there is none."""
        return await may_in(self.api, "", verb, resource, namespace, name, subresource)

    async def get_optional(self, path: str, default: Any, **query: str) -> Any:
        """Return what the user may read, and `default` for what he may not or what does not exist."""
        try:
            return await self.api.get(path, **query)
        except (Forbidden, NotFound):
            return default


async def may_in(
    api: UserAPI, base: str, verb: str, resource: Resource, namespace: str = "", name: str = "", subresource: str = ""
) -> bool:
    """Return whether the user may do this on the host, or on another API server, whose paths begin with `base`."""
    asked = {"verb": verb, "group": resource.group, "resource": resource.plural, "subresource": subresource}
    attributes = {**asked, "namespace": namespace, "name": name}
    review = await api.post(base + _ACCESS_REVIEWS, {**_ACCESS_REVIEW, "spec": {"resourceAttributes": attributes}})
    return bool(review["status"].get("allowed"))


async def read_all(
    page: Page, path: str, query: Mapping[str, str], page_rows: int = 500
) -> tuple[list[Mapping[str, Any]], bool]:
    """Return the items of a list over its pages, and whether these are all; at most as many as a file has rows."""
    items: list[Mapping[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        listed = await page.api.get(path, **query, **after, limit=str(min(page_rows, ROWS_MAX - len(items))))
        items += listed["items"]
        token = listed["metadata"].get("continue", "")
        if not token or len(items) >= ROWS_MAX:
            return items, not token
        after = {"continue": str(token)}


async def read_lists(page: Page, resource: Resource, namespace: str = "", **query: str) -> Mapping[str, Any]:
    """Return the list of a namespace, or of all; else whole lists of the namespaces in which the user has a role.

    Forbidden for a user who may list the kind nowhere.
    """
    try:
        found: Mapping[str, Any] = await page.api.get(resource.path(namespace), **query)
        return found
    except Forbidden:
        if namespace or (items := await _read_own(page, resource)) is None:
            raise
    return {"items": items, "metadata": {}}


async def read_optional_lists(
    page: Page, resource: Resource, namespace: str = "", **query: str
) -> Mapping[str, Any] | None:
    """Return the same, None for a user who may list the kind nowhere, and on a host without it."""
    try:
        return await read_lists(page, resource, namespace, **query)
    except (Forbidden, NotFound):
        return None


async def _read_own(page: Page, resource: Resource) -> list[Mapping[str, Any]] | None:
    """Return the objects in the namespaces in which the user has a role, None if he may list the kind in none."""
    own = (await page.api.get(ownnamespaces.PATH))["items"] if resource.namespaced else ()
    lists = [await _read_one(page, resource.path(each["name"])) for each in own]
    found = [items for items in lists if items is not None]
    return [item for items in found for item in items] if found else None


async def _read_one(page: Page, path: str) -> list[Mapping[str, Any]] | None:
    try:
        return (await read_all(page, path, {}))[0]
    except (Forbidden, NotFound):
        return None


Collection = tuple[str, Mapping[str, str]]
"""Path and query of a collection to watch."""


@dataclass(frozen=True, slots=True)
class Screen:
    """One screen. `title` is shown in the navigation if `is_listed`; `load` returns the variables of the template."""

    path: str
    title: str
    template: str
    load: Callable[[Page], Awaitable[Mapping[str, Any]]]
    watched: Callable[[Page], Sequence[Collection]]
    is_listed: bool = True
    pause_s: float = 1.0
    """Shortest time between two live updates; longer for a screen that costs the control plane more."""
    act: Callable[[Page, Mapping[str, str]], Awaitable[str | Mapping[str, Any]]] | None = None
    """Does what a form of the screen asks for. It returns the address to show next, or further variables of the
    template. An ApiError or ConfigurationError is shown on the page, as `problem`, with the fields as `form`."""
    form_bytes_max: int = SMALL_BYTES_MAX
    poll_s: float = 0.0
    """Longest time between two live updates, for what no collection of the host tells; 0 for no limit."""
    table: Callable[[Page], Awaitable[Table]] | None = None
    """Returns the list of the screen as a file has it, over all pages; None for a screen without a list."""
    within: str = ""
    """The address of the listed screen that has the button to this one, which the navigation then marks."""
    key: str = ""
    """The key that leads to a listed screen after `g`; the first letter of its title if it is ""."""
    styles_itself: bool = False
    """Whether a library on the page makes styles; they are allowed there, scripts of the page never are."""
    templates: Path = TEMPLATES
    """The folder of the template, which can use those of the UI."""


def nothing_watched(page: Page) -> Sequence["Collection"]:
    """Return no collections, for a screen that no change makes stale."""
    del page
    return []


def problem_of(error: FederationError) -> str:
    """Return the text of an error."""
    return str(error).strip() or getattr(error, "reason", "") or "the request failed"
