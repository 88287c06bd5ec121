"""`Hold`: what keeps a change from happening now. Pure.

Freezes, halts of evictions and ClusterDisruptionBudgets answer with it. Gates and permits of decisions have answers of
their own (`scheduling/answers.py`), which also say what is written meanwhile.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Hold:
    """What holds a change: a constant or the name of an object, the text for people, and its end.

    `until` is None if a change of something else ends it.
    """

    reason: str
    message: str
    until: datetime | None = None
