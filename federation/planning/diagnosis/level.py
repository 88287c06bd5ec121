"""How bad a finding of `fedctl doctor` is."""

from enum import StrEnum


class Level(StrEnum):
    """An error does not work or is about to stop; somebody should look at a warning."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
