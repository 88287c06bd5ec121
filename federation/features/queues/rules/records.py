"""What a round writes about an object: the record of its admission, with what its pods get. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import structs

from federation.apimachinery.annotationrecords import to_time
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.facts import Admitted, Amounts
from federation.planning.rendering.admittednodes import QUEUE_NODES
from federation.planning.rendering.names import QUEUE_RELEASED
from federation.scheduling.deadlines import Alternative
from federation.scheduling.jobqueues import ADMISSION, Admission, Phase


class Record(NamedTuple):
    """An admission, and its annotations with those that go with it."""

    admission: Admission
    annotations: Mapping[str, str | None]
    event: str = ""
    """The message of its event, "" for none."""


def to_admitted(
    entry: Entry, pays: str, admitted: Admitted, alternatives: Sequence[Alternative], now: datetime
) -> Record:
    """Return the record of an object that may start now; the ClusterJobQueue `pays` for it."""
    before = entry.admission
    admission = Admission(
        Phase.ADMITTED,
        entry.queue,
        to_time(now),
        holds=_by_flavor(admitted.holds),
        clusters=sorted(admitted.clusters),
        refusals=before.refusals if before is not None else 0,
        losses=before.losses if before is not None else 0,
        alternatives=list(alternatives),
        pays=pays,
        ended=entry.ended,
    )
    is_left = entry.is_suspended and (before is None or entry.released is not False)
    more = {**QUEUE_NODES.entry(list(admitted.nodes)), QUEUE_RELEASED: _text(is_left=is_left)}
    return _record(admission, more, f"JobQueue {entry.queue} admitted it, flavors {', '.join(admission.holds)}")


def to_evicted(before: Admission, because: str, now: datetime, refused_by: str = "") -> Record:
    """Return the record of an object that has to leave its cluster and wait again."""
    admission = Admission(
        Phase.EVICTED,
        before.queue,
        to_time(now),
        holds=before.holds,
        because=because,
        excluded=[refused_by] if refused_by else [],
        losses=before.losses,
        pays=before.pays,
    )
    return _record(admission, {}, because)


def to_smaller(before: Admission, holds: Amounts) -> Record:
    """Return the record of an object that has given up a part of what it held."""
    return _record(structs.replace(before, holds=_by_flavor(holds)), {})


def to_released(before: Admission, *, is_left: bool) -> Record:
    """Return the record of whether its queue may end the suspension of an object: only one from the start."""
    return _record(before, {QUEUE_RELEASED: _text(is_left=is_left)})


def _record(admission: Admission, more: Mapping[str, str | None], event: str = "") -> Record:
    return Record(admission, {**ADMISSION.entry(admission), **more}, event)


def _by_flavor(amounts: Amounts) -> dict[str, dict[str, int]]:
    holds: dict[str, dict[str, int]] = {}
    for (flavor, resource), amount in amounts.items():
        holds.setdefault(flavor, {})[resource] = amount
    return holds


def _text(*, is_left: bool) -> str:
    return "true" if is_left else "false"
