"""The next step of every cluster, so that all clusters together stay within one budget. Pure.

The budget is the user's own: at least `replicas - maxUnavailable` available pods, and at most `replicas + maxSurge`
pods, over all clusters. A step keeps the budget whatever the members do meanwhile: each cluster counts with the fewest
available pods and the most pods that its member can reach with what it was sent. A change that costs nothing is always
allowed, so after an unplanned loss, such as a dead node, the repair goes on and further losses do not. Costs are those
of the worst case; a change is free only if it costs nothing in the best case.

`plan_steps` has no state. It is called with each new observation until every cluster has the desired state.

Decision: docs/decisions/0240-updates-do-not-wait-for-a-users-decision.md
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from federation.planning.steps.strategy import Limits, Strategy

UNKNOWN_PODS = 1_000_000_000
"""Pods of a workload in a cluster whose cache is not complete: until it is, no cluster gets more."""


@dataclass(frozen=True, slots=True)
class Unobserved:
    """The sent and the earlier content of a member object whose controller has not observed the last write."""

    low: int
    """The fewest replicas."""
    high: int
    """The most replicas."""
    limits: Limits
    """The largest limits of updates."""
    has_template: bool = False
    """Whether a pod template was sent that may start an update."""


@dataclass(frozen=True, slots=True)
class Target:
    """A workload in one cluster: what is wanted, and what is observed. All numbers count pods."""

    cluster: str
    wanted: int
    """Replicas by the scheduler or a user; 0 for a departing cluster."""
    replicas: int = 0
    """`spec.replicas` of the member object; 0 without one."""
    pods: int = 0
    """`status.replicas`."""
    available: int = 0
    strategy: Strategy = field(default_factory=Strategy)
    """The strategy of the member object."""
    wanted_strategy: Strategy = field(default_factory=Strategy)
    exists: bool = True
    """Whether there is a member object."""
    is_departing: bool = False
    """Whether the cluster has left the placement."""
    is_steered: bool = True
    """Whether the scheduler decides the replicas. Those of users and autoscalers are left as they are."""
    is_answering: bool = True
    """Whether the cluster is ready. The pods of others are not available."""
    is_updating: bool = False
    """Whether the member may be replacing pods of an old revision."""
    has_old_template: bool = False
    """Whether the pod template of the member object is not the wanted one."""
    is_held: bool = False
    """Whether the wanted pod template must not be written, because the user paused updates or approves waves. Without
    an object there is none until then."""
    is_obstructed: bool = False
    """Whether an object of the same name in the cluster is not ours: nothing is written there before a user decides."""
    is_ordered: bool = False
    """Whether a smaller number of replicas removes the highest ordinals, available or not."""
    unobserved: Unobserved | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The next write to one cluster."""

    replicas: int
    gets_template: bool = True
    """Whether the wanted pod template may be written; else the member object keeps its own."""
    limits: Limits | None = None
    """The limits of the update; None for those of the wanted strategy."""
    scales_while_paused: bool = False
    """Whether the member must follow its replicas although updates are paused: it has no update to pause."""


@dataclass(slots=True)
class _Share:
    """The state of a target after the steps that are planned so far."""

    target: Target
    replicas: int
    is_updating: bool
    strategy: Strategy
    gets_template: bool = False
    limits: Limits | None = None

    def least(self, replicas: int | None = None, *, limits: Limits | None = None) -> int:
        """Return the fewest available pods that may be left; of an update with these limits if there are any."""
        target = self.target
        if not target.is_answering:
            return 0
        count = self.replicas if replicas is None else replicas
        sent = target.unobserved
        low = count if sent is None else min(count, sent.low)
        limits = limits or self._limits(low)
        available = target.available
        if limits is not None or target.is_ordered:
            # Pods that an update or an ordinal selects for deletion may be available ones.
            available -= max(0, (target.replicas if sent is None else max(target.replicas, sent.high)) - low)
        return max(0, min(available, low - (limits.unavailable if limits is not None else 0)))

    def most(self, replicas: int | None = None, *, limits: Limits | None = None) -> int:
        """Return the most pods that there may be; of an update with these limits if there are any."""
        target = self.target
        count = self.replicas if replicas is None else replicas
        sent = target.unobserved
        # A smaller number counts when the member's controller has observed it.
        high = max(count, target.replicas, 0 if sent is None else sent.high)
        limits = limits or self._limits(high)
        # An update has no more additional pods than it replaces.
        pods = max(target.pods, high + (min(limits.surge, high) if limits is not None else 0))
        if target.is_ordered and target.wanted < target.replicas:
            # Unavailable pods cannot be selected for deletion, so their replacements elsewhere come first.
            pods -= max(0, min(target.replicas - target.wanted, target.replicas - target.available))
        # What the scheduler has moved away from a cluster that does not answer is replaced at once.
        return pods if target.is_answering else min(pods, target.wanted)

    @property
    def available(self) -> int:
        """The available pods that the planned replicas keep if nothing else is on its way."""
        return min(self.target.available, self.replicas) if self.target.is_answering else 0

    @property
    def present(self) -> int:
        """The pods that there certainly are, or will be by the planned replicas."""
        pods = max(self.target.pods, self.target.replicas, self.replicas)
        return pods if self.target.is_answering else min(pods, self.target.wanted)

    def _limits(self, replicas: int) -> Limits | None:
        """Return the limits of the update that the member may be in, None without an update."""
        sent = self.target.unobserved
        if not self.is_updating:
            return None
        limits = self.strategy.limits(replicas)
        if sent is not None and sent.has_template:
            limits = Limits(max(limits.surge, sent.limits.surge), max(limits.unavailable, sent.limits.unavailable))
        return limits


@dataclass(slots=True)
class _Budget:
    """The rest of the budget; negative when it is exceeded."""

    surge: int
    unavailable: int
    obstructed: int = 0
    """Pods that must be available before others are removed, and that only a user's decision lets begin."""

    def allows(self, share: _Share, replicas: int, limits: Limits | None = None) -> bool:
        """Return whether the change of a cluster fits; one that certainly costs nothing always does."""
        most = share.most(replicas, limits=limits)
        is_kept = self.allows_fewer(share, replicas, limits)
        return is_kept and (most <= share.present or most - share.most() <= self.surge)

    def allows_fewer(self, share: _Share, replicas: int, limits: Limits | None = None) -> bool:
        """Return whether enough available pods are left. Fewer replicas never mean more pods."""
        least = share.least(replicas, limits=limits)
        return least >= share.available or share.least() - least <= self.unavailable

    def spend(self, share: _Share, replicas: int, limits: Limits | None = None) -> None:
        """Take the cost of the change of a cluster. What a change gives back is there when it is observed."""
        self.unavailable -= max(0, share.least() - share.least(replicas, limits=limits))
        self.surge -= max(0, share.most(replicas, limits=limits) - share.most())


def plan_steps(replicas: int, strategy: Strategy, targets: Iterable[Target]) -> dict[str, Step]:
    """Return the next step of each cluster.

    `replicas` are those that the user wants in total, `strategy` is the user's. A step of 0 replicas means that the
    cluster needs no member object, or none yet.
    """
    shares = [_begin(target) for target in sorted(targets, key=lambda target: target.cluster)]
    budget = _remaining(replicas, strategy, shares)
    for share in shares:
        _shrink(share, budget)
    for share in shares:
        _grow(share, budget)
    if any(share.target.is_obstructed for share in shares):
        _pass_over_obstructed(shares, budget)
    _update(shares, budget)
    for share in shares:
        _widen(share, budget)
    has_pods = any(share.target.pods for share in shares)
    return {
        share.target.cluster: Step(
            share.replicas, share.gets_template, share.limits, scales_while_paused=has_pods and not share.is_updating
        )
        for share in shares
    }


def _begin(target: Target) -> _Share:
    if _is_awaited(target):
        return _Share(target, 0, is_updating=False, strategy=target.strategy)
    replicas = target.replicas if target.is_steered else target.wanted
    if not target.is_steered and target.is_departing:
        replicas = target.replicas
    return _Share(target, replicas, target.is_updating, target.strategy, not target.has_old_template)


def _is_awaited(target: Target) -> bool:
    """Return whether the cluster gets nothing until its pod template is approved."""
    return target.is_held and not target.exists


def _is_whole(target: Target) -> bool:
    """Return whether the cluster keeps all of its pods or none, because an autoscaler in it decides their number."""
    return target.is_departing and not target.is_steered


def _remaining(replicas: int, strategy: Strategy, shares: list[_Share]) -> _Budget:
    """Return the budget that the present state leaves."""
    counted = [share for share in shares if not _is_whole(share.target)]
    wanted = sum(share.target.wanted for share in counted)
    if any(not share.target.is_steered for share in counted):
        # Users and autoscalers decide the total, too.
        replicas = wanted
    limits = strategy.budget(min(replicas, wanted))
    possible = sum(share.target.wanted for share in counted if not share.target.is_obstructed)
    return _Budget(
        surge=max(replicas, wanted) + limits.surge - sum(share.most() for share in counted),
        unavailable=sum(share.least() for share in counted) - (min(replicas, wanted) - limits.unavailable),
        obstructed=min(replicas, wanted) - min(replicas, possible),
    )


def _shrink(share: _Share, budget: _Budget) -> None:
    """Remove replicas as far as enough available pods are left."""
    target = share.target
    if _is_whole(target):
        if budget.unavailable >= 0:
            share.replicas = 0
    elif target.is_answering and target.is_steered and target.wanted < share.replicas:
        smaller = range(target.wanted, share.replicas)
        first = bisect_left(smaller, True, key=lambda count: budget.allows_fewer(share, count))
        if first < len(smaller):
            budget.spend(share, smaller[first])
            share.replicas = smaller[first]


def _grow(share: _Share, budget: _Budget) -> None:
    """Add replicas as far as there are not too many pods."""
    target = share.target
    if target.is_answering and target.is_steered and target.wanted > share.replicas and not _is_awaited(target):
        larger = range(share.replicas + 1, target.wanted + 1)
        count = bisect_right(larger, False, key=lambda count: not budget.allows(share, count))
        if count:
            budget.spend(share, larger[count - 1])
            share.replicas = larger[count - 1]


def _pass_over_obstructed(shares: list[_Share], budget: _Budget) -> None:
    """Let additions and updates elsewhere not wait for pods of obstructed clusters; removals do.

    If the user decides while these changes are under way, there can be as many more pods as the obstructed clusters
    were granted, for as long as the changes take.
    """
    budget.unavailable += budget.obstructed
    budget.surge += sum(share.most() for share in shares if share.target.is_obstructed)
    for share in shares:
        if not share.target.is_obstructed:
            _grow(share, budget)


def _update(shares: list[_Share], budget: _Budget) -> None:
    """Give the wanted pod template to clusters whose whole update fits; if none is updating, to one at least."""
    waiting = [share for share in shares if not share.gets_template]
    for share in waiting:
        _grant(share, budget)
    is_updating = any(share.is_updating and share.target.is_answering for share in shares)
    if is_updating or any(share.gets_template for share in waiting):
        return
    for share in waiting:
        if not share.target.is_held and share.target.is_answering and _grant_part(share, budget):
            return


def _grant(share: _Share, budget: _Budget) -> None:
    """Write the pod template if it costs nothing, or if the update fits with the limits of its strategy."""
    target = share.target
    if _is_awaited(target):
        return
    if not target.exists or (target.pods == 0 and target.replicas == 0 and target.unobserved is None):
        share.gets_template = True
    elif target.is_held or not target.is_answering:
        return
    else:
        limits = target.wanted_strategy.limits(share.replicas)
        is_free = not target.wanted_strategy.is_rolling or target.wanted_strategy.recreates
        if is_free or budget.allows(share, share.replicas, limits):
            if not is_free:
                budget.spend(share, share.replicas, limits)
            share.gets_template, share.strategy = True, target.wanted_strategy
            share.is_updating = target.wanted_strategy.is_rolling
        elif share.is_updating:
            # The pods are being replaced already, so another revision costs less than another update.
            _grant_part(share, budget)


def _grant_part(share: _Share, budget: _Budget) -> bool:
    """Write the pod template with the limits that fit; return False when not a single pod can be replaced."""
    own = share.target.wanted_strategy.limits(share.replicas)
    surge = _largest(own.surge, lambda count: budget.allows(share, share.replicas, Limits(count, 0)))
    rest = _largest(own.unavailable, lambda count: budget.allows(share, share.replicas, Limits(surge, count)))
    if not surge and not rest:
        return False
    limits = Limits(surge, rest)
    budget.spend(share, share.replicas, limits)
    share.gets_template, share.is_updating, share.limits = True, True, limits
    return True


def _widen(share: _Share, budget: _Budget) -> None:
    """Give an update that began with smaller limits those of its strategy as soon as they fit."""
    target = share.target
    if not (share.is_updating and share.gets_template and share.limits is None and target.is_updating):
        return
    own, present = target.wanted_strategy.limits(share.replicas), target.strategy.limits(share.replicas)
    if own.surge <= present.surge and own.unavailable <= present.unavailable:
        return
    if budget.allows(share, share.replicas, own):
        budget.spend(share, share.replicas, own)
    else:
        share.limits = present


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    return bisect_right(range(1, most + 1), False, key=lambda count: not fits(count))
