"""Links of the pages of the web UI, for tests that read every page."""

import re
from collections.abc import Iterable
from html import unescape

START = ("/ui/overview", "/ui/replay", "/ui/timeline", "/ui/map", "/ui/attention", "/ui/capacity", "/ui/search?q=e")
_LINK = re.compile(r'href="(/ui/[^"#]*)')
_SKIPPED = re.compile(r"/ui/(?:static|log|oidc|link|start)|live=|export=yaml")


class Frontier:
    """The pages that are to be read: those of links, each once, at most a number of each form of address."""

    def __init__(self, start: Iterable[str] = START, *, of_a_form_max: int = 6) -> None:
        self._waiting = list(start)
        self._seen = set(self._waiting)
        self._of_a_form_max = of_a_form_max
        self._forms: dict[str, int] = {}

    def __iter__(self) -> "Frontier":
        return self

    def __next__(self) -> str:
        if not self._waiting:
            raise StopIteration
        return self._waiting.pop(0)

    def add(self, page: str) -> None:
        """Add the links of a page."""
        for found in _LINK.findall(page):
            link = unescape(found)
            if link in self._seen or _SKIPPED.search(link):
                continue
            self._seen.add(link)
            path, _, query = link.partition("?")
            form = "/".join(path.split("/")[:4]) + "?" + "&".join(part.partition("=")[0] for part in query.split("&"))
            self._forms[form] = self._forms.get(form, 0) + 1
            if self._forms[form] <= self._of_a_form_max:
                self._waiting.append(link)
