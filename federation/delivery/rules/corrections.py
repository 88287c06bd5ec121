"""Corrections of objects that somebody in a member has changed: what counts as one, and what is new about it. Pure.

When corrections pause is decided in `planning/drift/fights.py`. Each member object's record has its last corrections;
`members/driftreports.py` counts and reports them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.delivery.rules.memberrecord import Drifted, MemberRecord
from federation.planning.drift.fields import Author, Field
from federation.planning.drift.fights import after_correction, is_over, pause_left_s
from federation.planning.status.delivery import Drift

KEPT_S = 3600.0
"""How long a correction is shown."""


@dataclass(frozen=True, slots=True)
class Correction:
    """The fields that an apply has corrected, and who had changed them, None when the member does not tell."""

    fields: tuple[Field, ...]
    author: Author | None


class News(NamedTuple):
    """Whether a correction began a burst, a pause or a fight."""

    begins_burst: bool
    begins_pause: bool
    begins_fight: bool


def is_correction(record: MemberRecord, digest: str, live: Mapping[str, Any] | None) -> bool:
    """Return whether content that differs from the live object (None when it is gone) was applied before.

    The hash on the object tells that also after a restart. Somebody who changes the hash too is recognised by the
    content of our last write.
    """
    annotations = live["metadata"].get("annotations") if live is not None else None
    return (annotations or {}).get(names.TEMPLATE_HASH) == digest or record.content == digest


def after(before: Drifted | None, correction: Correction, now_s: float, now: datetime) -> tuple[Drifted, News]:
    """Return the drift of an object after another correction, and what is new about it."""
    fields = tuple(field.name for field in correction.fields)
    burst = after_correction(before.burst if before is not None else None, fields, now_s)
    if before is None or is_over(before.burst, now_s):
        before = None
    author = correction.author or (before.author if before is not None else None)
    pauses_before = 0 if before is None else before.burst.pauses
    news = News(before is None, burst.pauses > pauses_before, burst.pauses > pauses_before == 0)
    return Drifted(burst, fields, author, now if before is None else before.first, now), news


def shown(known: Drifted | None, now_s: float, now: datetime) -> Drift | None:
    """Return the drift of the last hour as users see it, None without any."""
    if known is None or now_s - max(known.burst.last_s, known.burst.paused_until_s) > KEPT_S:
        return None
    left_s = pause_left_s(known.burst, now_s)
    author = known.author or Author("", "", "")
    return Drift(
        fields=list(known.fields),
        manager=author.manager,
        operation=author.operation,
        time=author.time,
        corrections=known.burst.count,
        since=to_rfc3339(known.first),
        last=to_rfc3339(known.last),
        paused_until=to_rfc3339(now + timedelta(seconds=left_s)) if left_s > 0 else "",
    )
