"""What the demo shows on a terminal."""

import io

from rich.console import Console

from federation.cli.demo import add_row, tell, to_progress


def test_rows_are_shown_before_and_after_anything_is_known() -> None:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True)
    progress = to_progress(console)
    row = add_row(progress, "  member-1")
    console.print(progress)
    assert "waiting" in text.getvalue()
    tell(progress, row, 2, 4)
    console.print(progress)
    assert "2/4 ready" in text.getvalue()
