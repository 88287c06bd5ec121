"""Count the time in which another party could have answered, and no other time.

A silence is evidence only while an answer could have arrived. A process that stood still and a database that answers
no request say nothing about a leader or a member. Candidates for a Lease and joins of clusters count with `Silence`.

Decision: docs/decisions/0212-silence-counts-while-an-answer-could-arrive.md
"""


class Silence:
    """Seconds of silence, counted from look to look. A look is a successful question; one that failed is no look."""

    __slots__ = ("_looked_s", "counted_s")

    def __init__(self) -> None:
        self.counted_s = 0.0
        self._looked_s: float | None = None

    def look(self, now_s: float, step_s_max: float) -> float:
        """Count the time since the last look, at most `step_s_max`, and return all that was counted."""
        if self._looked_s is not None:
            self.counted_s += max(0.0, min(now_s - self._looked_s, step_s_max))
        self._looked_s = now_s
        return self.counted_s

    def end(self, now_s: float) -> None:
        """Begin again: the other party answered."""
        self.counted_s, self._looked_s = 0.0, now_s
