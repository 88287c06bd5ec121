"""The demo's progress display."""

import io

from rich.console import Console

from federation.cli.demo import add_row, to_progress, update_row


def test_a_row_shows_waiting_until_its_replicas_are_known() -> None:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True)
    progress = to_progress(console)
    row = add_row(progress, "  member-1")
    console.print(progress)
    assert "waiting" in text.getvalue()
    update_row(progress, row, 2, 4)
    console.print(progress)
    assert "2/4 ready" in text.getvalue()
