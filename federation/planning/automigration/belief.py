"""What is believed about the capacity of one member for one workload, and what changes that belief.

A member that cannot schedule replicas is believed to hold those that it can (KubeAdmiral's `estimatedCapacity`).
KubeAdmiral forgets that as soon as the replicas are gone; here it is kept until there is evidence of more, and evidence
has to last:

    full ──── room, or surplus replicas that run ──▶ returning, since the evidence is there
    returning ──────── it lasted for `stable_s` ───▶ offered (it vanished: full)
    offered ─────────── the scheduler takes it ────▶ on trial (it does not want it: there is enough, the belief goes)
    on trial ──────────────────── they all run ────▶ the capacity grows: full, or offered again while there is room
    on trial ── unschedulable, or too slow ────────▶ full, and the room that was seen is refuted
                                                     (those of them that have a node stay on trial)

A failed trial raises the bar: the room that misled us (`refuted`) must be exceeded before the next one. So each trial
raises the capacity or the bar, and with constant capacity the decisions come to rest. Replicas elsewhere are taken away
only after those on trial run. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Belief:
    """How many replicas a member can run. No `offered`: full, or returning since `since_s`; else offered, or on trial.

    `since_s` is the monotonic time since when the evidence or the trial lasts.
    """

    capacity: int
    refuted: int = 0
    """Room on nodes that turned out not to be usable: only more than that counts."""
    offered: int = 0
    """Replicas beyond the capacity that may be tried."""
    since_s: float | None = None

    @property
    def is_on_trial(self) -> bool:
        """Whether the scheduler has taken the offer."""
        return self.offered > 0 and self.since_s is not None


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to see of the workload in one member; zeros when it has no copy.

    `placed` is the scheduler's number, `desired` the member's own. `room` is how many more replicas the nodes would
    take, None when that is not known.
    """

    placed: int = 0
    desired: int = 0
    ready: int = 0
    pods: int = 0
    unschedulable: int = 0
    room: int | None = None

    @property
    def running(self) -> int:
        """The replicas that run and are to stay."""
        return min(self.ready, self.desired)

    @property
    def fits(self) -> int | None:
        """The replicas that can be scheduled (those without a pod yet included), None when that is all of them."""
        fits = max(0, max(self.pods, self.desired) - self.unschedulable)
        return fits if self.unschedulable and fits < self.desired else None


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms replicas come back."""

    stable_s: float
    """How long evidence of more capacity must last."""
    trial_s: float
    """How long replicas on trial may take to run."""
    batch: int
    """The most replicas on trial at a time; 0 only forgets what is not true any more and moves nothing."""
    is_answered: bool = False
    """Whether the scheduler has decided on the offers that stand."""


def revise(beliefs: Mapping[str, Belief], sights: Mapping[str, Sight], now_s: float, terms: Terms) -> dict[str, Belief]:
    """Return what is believed after this look at the members; of one that could not be seen it stays the same."""
    # The batch is shared: while one member's replicas are on trial, an offer elsewhere may stand unused.
    is_busy = any(
        belief.offered and (sights[cluster].placed > belief.capacity if cluster in sights else belief.is_on_trial)
        for cluster, belief in beliefs.items()
    )
    terms = replace(terms, is_answered=terms.is_answered and not is_busy)
    revised = dict(beliefs)
    for cluster, sight in sights.items():
        belief = _revise(beliefs.get(cluster), sight, now_s, terms)
        if belief is None:
            revised.pop(cluster, None)
        else:
            revised[cluster] = belief
    return revised


def find_openings(beliefs: Mapping[str, Belief], sights: Mapping[str, Sight], total: int) -> dict[str, int]:
    """Return the members with room that are not believed to be full, and how many of the replicas that wait fit there.

    A scheduler that looks at room did not choose them when they had none, or when it saw less than there is; it has to
    look again. Where something is believed, it is no more than the capacity that is not used. Replicas that have been
    placed there and have no pod yet take the room first. Those that wait although the `total` runs, because the policy
    keeps them, need none.
    """
    lacking = total - sum(sight.running for sight in sights.values())
    waiting = min(lacking, sum(sight.unschedulable for sight in sights.values()))
    openings = {}
    for cluster, sight in sights.items():
        count = min((sight.room or 0) - max(0, sight.placed - sight.pods), waiting)
        if cluster in beliefs:
            count = min(count, beliefs[cluster].capacity - sight.placed)
        if count > 0 and not sight.unschedulable:
            openings[cluster] = count
    return openings


def next_look_s(belief: Belief, terms: Terms) -> float | None:
    """Return the monotonic time at which the belief changes although nothing happens, None when it does not."""
    if belief.since_s is None:
        return None
    return belief.since_s + (terms.trial_s if belief.offered else terms.stable_s)


def _revise(belief: Belief | None, sight: Sight, now_s: float, terms: Terms) -> Belief | None:
    fits = sight.fits
    if belief is None:
        return None if fits is None else Belief(fits, refuted=sight.room or 0)
    if fits is not None and (belief.offered or fits < belief.capacity):
        return _refute(belief, sight, fits, now_s)
    if belief.is_on_trial:
        return _follow_trial(belief, sight, now_s, terms)
    if belief.offered:
        return _follow_offer(belief, sight, now_s, terms)
    return _follow_evidence(belief, sight, now_s, terms)


def _refute(belief: Belief, sight: Sight, fits: int, now_s: float) -> Belief:
    """Believe what the member shows: the room that is still seen is none; what has a node and does not run yet may."""
    capacity = min(fits, max(belief.capacity, sight.ready))
    room = belief.refuted if sight.room is None else sight.room
    if fits == capacity:
        return Belief(capacity, refuted=room)
    return Belief(capacity, room, offered=fits - capacity, since_s=now_s if belief.since_s is None else belief.since_s)


def _follow_trial(belief: Belief, sight: Sight, now_s: float, terms: Terms) -> Belief:
    """Believe in the capacity once the whole batch runs; give up on one that takes too long."""
    assert belief.since_s is not None
    running = min(sight.running, sight.placed)
    if sight.placed <= belief.capacity or running >= sight.placed:
        return _offer(replace(belief, capacity=max(belief.capacity, running)), sight, terms)
    if now_s - belief.since_s < terms.trial_s:
        return belief
    capacity = max(belief.capacity, running)
    return Belief(capacity, refuted=(sight.room or 0) + max(0, sight.placed - capacity))


def _follow_offer(belief: Belief, sight: Sight, now_s: float, terms: Terms) -> Belief | None:
    """See whether the scheduler takes the offer; one that it does not want shows that there is enough capacity."""
    if sight.placed > belief.capacity:
        return replace(belief, since_s=now_s)
    if terms.is_answered:
        return None
    return _offer(belief, sight, terms)


def _offer(belief: Belief, sight: Sight, terms: Terms) -> Belief:
    """Offer as much as there is room for, at most a batch; room that is not known offers nothing."""
    return replace(belief, offered=min(_room_beyond(belief, sight), terms.batch), since_s=None)


def _room_beyond(belief: Belief, sight: Sight) -> int:
    """Return the room that is neither refuted nor part of the capacity that is believed in anyway and not used."""
    unused = max(0, belief.capacity - sight.running)
    return max(0, (sight.room or 0) - belief.refuted - unused)


def _follow_evidence(belief: Belief, sight: Sight, now_s: float, terms: Terms) -> Belief | None:
    """Wait until surplus replicas have run, or room has been there, for long enough; then believe in it."""
    surplus = max(0, sight.running - belief.capacity)
    if sight.room is None and not surplus:
        return belief
    shown = replace(belief, capacity=belief.capacity + surplus)
    room = _room_beyond(shown, sight)
    if not room and not surplus:
        return replace(belief, since_s=None)
    since_s = now_s if belief.since_s is None else belief.since_s
    if now_s - since_s < terms.stable_s:
        return replace(belief, since_s=since_s)
    if room and not terms.batch:
        return None
    return _offer(shown, sight, terms)
