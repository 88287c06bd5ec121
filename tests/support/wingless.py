"""A pytest plugin: the process has no leaf features, as if their folders were deleted (`tools/wingless.py`)."""

from tools import wingless

wingless.install()
