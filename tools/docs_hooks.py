"""Hooks of the documentation site: links to files outside of docs/ become the names of these files.

The pages link to examples, charts and benchmarks of the repository, which are not part of the site.
"""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with links that stay within the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def shown(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, found[2].partition("#")[0]))
        if target == "docs" or target.startswith("docs/"):
            return found[0]
        text = found[1].strip("`")
        return f"`{target}`" if text in target else f"{found[1]} (`{target}`)"

    return _LINK.sub(shown, markdown)
