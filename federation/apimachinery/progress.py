"""How work that may take long says what it is doing; `federation.terminal.progress` shows it to a user."""

from collections.abc import Callable

Report = Callable[[str], None]
"""Takes what is being done now, as in `copying objects: 500`; it is called often, and shows what it likes of it."""


def unreported(text: str) -> None:
    """Show nothing."""
