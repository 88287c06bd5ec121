"""Empty the arguments of our functions after an evaluation, because the CEL runtime keeps them for ever.

Version 0.1.3 of cel-expr-python never drops its reference to an argument that it made for a function in Python. Lists
and mappings are emptied when the evaluation has ended and its result has been read; texts stay.
"""

import threading
from collections.abc import Callable
from typing import Any

_present = threading.local()


def collecting(impl: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function; its lists and mappings are collected for `release`."""

    def collect(*arguments: Any) -> Any:
        _collected().extend(argument for argument in arguments if isinstance(argument, (list, dict)))
        return impl(*arguments)

    return collect


def release() -> None:
    """Empty what was collected in this thread."""
    found = _collected()
    for argument in found:
        argument.clear()
    found.clear()


def _collected() -> list[Any]:
    found: list[Any] | None = getattr(_present, "arguments", None)
    if found is None:
        found = _present.arguments = []
    return found
