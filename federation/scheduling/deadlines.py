"""Jobs with a deadline: the cheapest cluster that they can wait for and still end in time. Pure.

The author of a job writes the deadline and how long the job runs in one annotation. For each cluster an alternative is
computed: when the job can start there, when it has ended at the latest, and what it costs until then. Nodes of spot
clusters may be taken away: a job with `spotRetries` left may lose them so often, each time the work since its last
checkpoint, and one without any left does not use them. The queue chooses (`features/queues`); plans and `fedctl
why` show the alternatives.

Decision: docs/decisions/0165-jobs-wait-for-the-cheapest-cluster-in-time.md
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from federation.api import names
from federation.apimachinery import dotpaths
from federation.apimachinery.annotationrecords import Time
from federation.apimachinery.durations import parse_duration
from federation.planning.cost.rates import from_nano
from federation.scheduling.framework.costs import CARBON, PRICE, is_spot, rates_of
from federation.scheduling.framework.types import Cluster

_LIMITS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("batch", "Job"): ("spec", "activeDeadlineSeconds"),
    ("ray.io", "RayJob"): ("spec", "activeDeadlineSeconds"),
    ("argoproj.io", "Workflow"): ("spec", "activeDeadlineSeconds"),
}
"""Where kinds have a limit of time that their controllers enforce; a limit that nobody enforces is no promise."""
_OF_KUBEFLOW = ("spec", "runPolicy", "activeDeadlineSeconds")
_LIMIT_S_MAX = 10 * 365 * 24 * 3600
SHOWN_MAX = 5
"""Alternatives that are shown."""
_HOUR_S = 3600
_RUN_S_MAX = 365 * 24 * 3600.0
_RETRIES_MAX = 100
"""With the longest job of all, the end is still a time that can be written."""
_PROBLEM_MAX = 300
_MARGIN = 0.1
"""An estimated start may be later by this part of the time until then, and the job still ends in time."""
_FORM = '{"by": "2026-03-01T06:00:00Z", "runTime": "2h"}'


class Minimize(StrEnum):
    """The rates that decide between clusters."""

    PRICE = "Price"
    CARBON = "Carbon"


class _Wish(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    by: Time
    run_time: str = ""
    checkpoint_every: str = ""
    spot_retries: Annotated[int, msgspec.Meta(ge=0, le=_RETRIES_MAX)] = 1
    minimize: Minimize = Minimize.PRICE


@dataclass(frozen=True, slots=True)
class Deadline:
    """The wish of an author. Times are seconds since the epoch, `checkpoint_s` is the work that is lost at most."""

    by_s: float
    run_s: float
    checkpoint_s: float
    spot_retries: int
    measure: str

    def end_s(self, start_s: float, *, is_spot: bool) -> float:
        """Return when a job that starts then has ended at the latest, all retries included."""
        return start_s + self.run_s + (self.spot_retries * self.checkpoint_s if is_spot else 0.0)


class Alternative(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A cluster for a job: its start, its end at the latest, and what it costs until then (or emits, in grams).

    A start or a cost that is not known is absent.
    """

    cluster: str
    is_met: bool = False
    starts_at: Time | None = None
    ends_by: Time | None = None
    cost: float | None = None
    is_spot: bool = False
    measure: str = PRICE


@dataclass(frozen=True, slots=True)
class Offer:
    """A cluster: billionths per hour for all pods (None: not known), and when they could start (None: not known)."""

    cluster: str
    per_hour: int | None
    is_spot: bool
    start_s: float | None


def read_deadline(annotations: Mapping[str, str], limit_s: float | None, losses: int = 0) -> Deadline | str | None:
    """Return the deadline of a job, None without one; a text for its author if the annotation is malformed.

    `limit_s` is the time that the job can run at most, `losses` how often it has lost its cluster.
    """
    text = annotations.get(names.DEADLINE)
    if text is None:
        return None
    try:
        wish = msgspec.json.decode(text, type=_Wish)
        run_s = _seconds("runTime", wish.run_time) if wish.run_time else limit_s
        checkpoint_s = _seconds("checkpointEvery", wish.checkpoint_every) if wish.checkpoint_every else None
    except (ValueError, RecursionError, UnicodeEncodeError) as error:
        return f"annotation {names.DEADLINE} is not such as {_FORM}: {str(error)[:_PROBLEM_MAX]}"
    if run_s is None:
        return f"annotation {names.DEADLINE} has no runTime, and the job has no activeDeadlineSeconds"
    lost_s = run_s if checkpoint_s is None else min(checkpoint_s, run_s)
    measure = CARBON if wish.minimize is Minimize.CARBON else PRICE
    return Deadline(wish.by.timestamp(), run_s, lost_s, max(0, wish.spot_retries - losses), measure)


def limit_of(template: Mapping[str, Any]) -> float | None:
    """Return how long an object can run at most, in seconds, if its kind enforces that."""
    group = str(template.get("apiVersion") or "").partition("/")[0]
    kind = str(template.get("kind") or "")
    path = _OF_KUBEFLOW if group == "kubeflow.org" else _LIMITS.get((group, kind))
    value = dotpaths.get(template, path) if path is not None else None
    return float(value) if type(value) is int and 0 < value <= _LIMIT_S_MAX else None


def _seconds(field: str, text: str) -> float:
    found = parse_duration(text)
    if not 0 < found <= _RUN_S_MAX:
        raise ValueError(f"{field} is {text}, which is not between 0 and one year")
    return found


def to_offer(cluster: Cluster, request: Mapping[str, int], measure: str, start_s: float | None) -> Offer:
    """Return what a cluster offers for pods that request so much together."""
    return Offer(cluster.name, rates_of(cluster, measure).cost_of(request), is_spot(cluster), start_s)


def by_cost(offer: Offer) -> tuple[float, str]:
    """Return the sort key of an offer: the cheapest first, those of unknown cost last."""
    return (float("inf") if offer.per_hour is None else float(offer.per_hour), offer.cluster)


def to_alternatives(deadline: Deadline, offers: Iterable[Offer], now: float) -> list[Alternative]:
    """Return an alternative for each offer, the best one first.

    Those that end in time come first, the cheapest before others; of the others, those that end first. An unknown cost
    is higher than any that is known, an unknown start never in time.
    """
    found = [(_rank(deadline, offer, now), offer) for offer in offers]
    return [_to_alternative(deadline, offer, is_met=not rank[0]) for rank, offer in sorted(found, key=lambda f: f[0])]


def _rank(deadline: Deadline, offer: Offer, now: float) -> tuple[int, float, float, str]:
    """Return the sort key of an offer; it begins with 0 for one that is in time."""
    end_s, cost = _end_s(deadline, offer), _cost_of(deadline, offer)
    price = float("inf") if cost is None else float(cost)
    if end_s is None or offer.start_s is None or (offer.is_spot and not deadline.spot_retries):
        return (2, float("inf") if end_s is None else end_s, price, offer.cluster)
    if end_s + _MARGIN * max(0.0, offer.start_s - now) > deadline.by_s:
        return (1, end_s, price, offer.cluster)
    return (0, price, end_s, offer.cluster)


def _end_s(deadline: Deadline, offer: Offer) -> float | None:
    return None if offer.start_s is None else deadline.end_s(offer.start_s, is_spot=offer.is_spot)


def _cost_of(deadline: Deadline, offer: Offer) -> int | None:
    if offer.per_hour is None:
        return None
    return round(offer.per_hour * deadline.end_s(0.0, is_spot=offer.is_spot) / _HOUR_S)


def _to_alternative(deadline: Deadline, offer: Offer, *, is_met: bool) -> Alternative:
    cost, end_s = _cost_of(deadline, offer), _end_s(deadline, offer)
    return Alternative(
        offer.cluster,
        is_met,
        _to_time(offer.start_s),
        _to_time(end_s),
        None if cost is None else from_nano(cost),
        offer.is_spot,
        deadline.measure,
    )


def _to_time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(round(seconds), UTC)
