"""What a screen is: one module with a `SCREEN`, and one template of the same name.

A screen loads its data through the API with the rights of the user and names the collections whose changes make it
stale; `uiapp.py` does the rest: log-in, headers, errors, live updates.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from federation.apimachinery.errors import ApiError, Forbidden, NotFound
from federation.web.ui.userapi import UserAPI

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

    def link(self, **changes: str) -> str:
        """Return the page's own address with some parameters of the query changed; "" removes one."""
        query = {key: value for key, value in {**self.query, **changes}.items() if value}
        return f"{self.path}?{urlencode(query)}" if query else self.path

    async def get_optional(self, path: str, default: Any, **query: str) -> Any:
        """Return what the user may read, and `default` for what he may not or what does not exist."""
        try:
            return await self.api.get(path, **query)
        except (Forbidden, NotFound):
            return default


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
    poll_s: float = 0.0
    """Longest time between two live updates, for what no collection of the host tells; 0 for no limit."""


def problem_of(error: ApiError) -> str:
    """Return the text of an error."""
    return error.message.strip() or error.reason
