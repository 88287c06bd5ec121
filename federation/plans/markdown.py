"""Text of others inside Markdown: names, reasons and messages that must stay text. Pure.

Everything that is not ours goes into a code span. There no link, HTML, mention, picture or command of a forge has a
meaning, in CommonMark and in the dialects of GitHub, GitLab and Gitea. Nothing leaves a span: line breaks and controls
are replaced, and the marks around it are longer than any row of marks in it.
"""

import re

from federation.apimachinery.controlcharacters import escape

_LENGTH_MAX = 300
_SPACE = re.compile(r"\s+")
_MARKS = re.compile("`+")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)
"""Characters that show nothing, and so hide a difference between two names."""


def code(text: object, length_max: int = _LENGTH_MAX) -> str:
    """Return the text as a code span, shortened if it is long; also right inside a table."""
    found = escape(_SPACE.sub(" ", str(text))).strip()
    # Tables are divided at bars before spans are read, and dialects differ in how a bar is escaped there.
    found = _INVISIBLE.sub("\ufffd", found).replace("|", "¦")
    if len(found) > length_max:
        found = found[: length_max - 1] + "…"
    if not found:
        return ""
    marks = "`" * (max((len(each) for each in _MARKS.findall(found)), default=0) + 1)
    pad = " " if found.startswith("`") or found.endswith("`") else ""
    return f"{marks}{pad}{found}{pad}{marks}"
