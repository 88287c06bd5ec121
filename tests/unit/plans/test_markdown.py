"""Whatever a text has in it, as a code span it stays text: one span, in one cell of a table."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from federation.plans.markdown import code

HOSTILE = (
    "`",
    "``` ",
    "a`b``c",
    "|",
    "\\|",
    "a\\",
    "\\`",
    "</td><script>alert(1)</script>",
    "![x](https://evil.example/p.png)",
    "[x](javascript:alert(1))",
    "@everyone #1 ~all",
    "\n\n# title\n\n- [ ] task\n/approve\n",
    "-->\n<!--",
    "a\u202eb\u200bc",
    "\x1b[31mred",
    "x" * 10_000,
)
PARSER = MarkdownIt("commonmark").enable("table")


def shown(text: str) -> list[str]:
    """Return the texts of code spans in a cell of a table that has the text; fail if there is anything else."""
    html = PARSER.render(f"| a | b |\n|---|---|\n| {code(text)} | end |\n")
    found = re.findall(r"<td>(.*?)</td>", html, re.DOTALL)
    assert len(found) == 2, html
    assert found[1] == "end", html
    match = re.fullmatch(r"(?:<code>([^<]*)</code>)?", found[0])
    assert match, html
    return [match[1] or ""]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_stays_one_code_span(text: str) -> None:
    shown(text)
    assert len(code(text)) < 500


@given(st.text(alphabet=st.sampled_from("`|\\ \n<>&*_[]()!#-~ab\u202e\u200b\t"), max_size=40))
def test_no_text_leaves_its_span(text: str) -> None:
    shown(text)
    # Outside of a table, too, with text of ours around it.
    html = PARSER.render(f"- one {code(text)} two\n")
    assert re.fullmatch(r"<ul>\n<li>one ?(<code>[^<]*</code>)? ?two</li>\n</ul>\n", html), html


def test_an_ordinary_text_is_shown_as_it_is() -> None:
    assert code("deployment/web") == "`deployment/web`"
    assert code("  two\n lines ") == "`two lines`"
    assert code("") == ""
    assert code("a`b") == "``a`b``"
