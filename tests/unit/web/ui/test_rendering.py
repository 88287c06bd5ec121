"""What templates do with texts."""

from pathlib import Path

import pytest

from federation.web.ui.rendering import render, to_plain_times


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("holds until 2040-01-01T00:00:00Z: asleep", "2040-01-01 00:00 UTC</time>: asleep"),
        ("at 2026-11-27T21:16:36.123456Z.", '<time datetime="2026-11-27T21:16:36.123456Z">2026-11-27 21:16:36 UTC'),
        ("on 2026-99-27T21:16:36Z", "on 2026-99-27T21:16:36Z"),
        ("<b>2026-11-27T21:16:36Z</b>", "&lt;b&gt;<time"),
        (None, ""),
    ],
    ids=["whole-minute", "fraction", "no-time", "markup-is-escaped", "none"],
)
def test_times_in_sentences_are_for_people_and_markup_is_escaped(text: str | None, shown: str) -> None:
    assert shown in str(to_plain_times(text))


def test_text_that_reorders_itself_is_shown_as_it_is_stored(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>{{ reason }}</p>")
    page = render("page.html", folder=tmp_path, reason="keep \u202edlo\u202c, \u2066ünïcode\u2069 שלום")
    assert bytes(page.body).decode() == "<p>keep \\u202edlo\\u202c, \\u2066ünïcode\\u2069 שלום</p>"
