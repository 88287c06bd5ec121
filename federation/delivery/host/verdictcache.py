"""Verdicts of the host's admission by review: bounded in number and age, and void after a change of configuration.

An unanswered review is remembered too, with a pause that doubles, so that a webhook that is down is not asked by
every reconcile. It lives as long as the controller and does no I/O. `hostadmission.py` asks the questions.
"""

from collections import OrderedDict
from dataclasses import dataclass

from federation.planning.rendering.verdicts import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class VerdictCacheOptions:
    """Limits of remembered verdicts."""

    verdicts_max: int = 10_000
    """Remembered verdicts, some hundred bytes each; a forgotten one is asked again when its object is written."""
    verdict_age_s_max: float = 300.0
    """How long a verdict holds. A refused object is judged again after this time."""
    retry_s_min: float = 1.0
    retry_s_max: float = 60.0
    """The pause after an unanswered review; it doubles up to this one."""


@dataclass(frozen=True, slots=True)
class Review:
    """The hash of the object to judge, the user as JSON, and the hash of the source if the verdict depends on it."""

    subject: str
    user: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class _Remembered:
    verdict: Verdict
    configuration: int
    until_s: float
    failures: int


class VerdictCache:
    """Verdicts of the current configuration, whose number `configuration` grows with every change."""

    def __init__(self, options: VerdictCacheOptions | None = None) -> None:
        self.configuration = 0
        self._options = options or VerdictCacheOptions()
        self._remembered: OrderedDict[Review, _Remembered] = OrderedDict()

    def get(self, review: Review, now_s: float) -> tuple[Verdict, float] | None:
        """Return the verdict and for how many seconds it holds, None if the host has to be asked."""
        known = self._remembered.get(review)
        if known is None or known.configuration != self.configuration or known.until_s <= now_s:
            return None
        self._remembered.move_to_end(review)
        return known.verdict, known.until_s - now_s

    def put(self, review: Review, verdict: Verdict, configuration: int, now_s: float) -> None:
        """Remember the answer to a review that was asked under this configuration."""
        options = self._options
        before, failures, age_s = self._remembered.pop(review, None), 0, options.verdict_age_s_max
        if verdict.outcome is Outcome.UNANSWERED:
            is_repeated = before is not None and before.configuration == configuration
            failures = 1 + (before.failures if before is not None and is_repeated else 0)
            age_s = min(options.retry_s_min * 2 ** min(failures - 1, 16), options.retry_s_max)
        self._remembered[review] = _Remembered(verdict, configuration, now_s + age_s, failures)
        if len(self._remembered) > options.verdicts_max:
            self._remembered.popitem(last=False)
