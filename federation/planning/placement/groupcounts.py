"""Choose clusters so that they are in at least and at most so many groups: clusters, zones, regions, providers. Pure.

A group has one value of a cluster label; without a label each cluster is a group of its own. Several limits hold at the
same time. The choice keeps the order of preference: it takes the first clusters that complete the groups that are
needed, then the others in order that open no group too many. It never violates a limit. If the first choice leads
nowhere, it begins with another group, up to a number of attempts.

Reference: docs/scheduling.md#numbers-of-groups.
Decision: docs/decisions/0140-groups-of-clusters-are-counted-after-selection.md
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

_ATTEMPTS_MAX = 64
Values = tuple[str | None, ...]
"""The group of a cluster by each limit; None where it lacks the label."""


class GroupLimit(NamedTuple):
    """One entry of `spec.spreadConstraints`; `key` is "" for clusters, `most` None for any number."""

    key: str = ""
    least: int = 1
    most: int | None = None

    def describe(self, found: int) -> str:
        """Return the limit and what there is of it, for people."""
        what = f"values of {self.key}" if self.key else "clusters"
        most = f" and at most {self.most}" if self.most is not None else ""
        return f"at least {self.least}{most} {what} (there are {found})"


class GroupChoice(NamedTuple):
    """The chosen clusters in order, and those of them that complete the needed groups; `problem` if there are none."""

    chosen: tuple[str, ...]
    needed: tuple[str, ...] = ()
    problem: str = ""


def values_of(limits: Sequence[GroupLimit], name: str, labels: Mapping[str, str]) -> Values:
    """Return the groups of a cluster."""
    return tuple([labels.get(limit.key) if limit.key else name for limit in limits])


def choose_groups(
    ordered: Sequence[str], values: Mapping[str, Values], limits: Sequence[GroupLimit], clusters_max: int | None
) -> GroupChoice:
    """Return the choice among clusters in order of preference; those without a label of a limit are not chosen."""
    names = [name for name in ordered if None not in values[name]]
    for at, limit in enumerate(limits):
        found = len({values[name][at] for name in names})
        if found < limit.least:
            return GroupChoice((), problem=limit.describe(found))
    starts = dict.fromkeys([(), *((name,) for name in _first_of_groups(names, values))])
    for start in islice(starts, _ATTEMPTS_MAX):
        if (needed := _complete(start, names, values, limits, clusters_max)) is not None:
            return GroupChoice(_extend(needed, names, values, limits, clusters_max), needed)
    limit_text = "; ".join(limit.describe(len({values[name][at] for name in names})) for at, limit in enumerate(limits))
    within = f" in at most {clusters_max} clusters" if clusters_max is not None else ""
    return GroupChoice((), problem=f"{limit_text}: no choice of clusters{within} satisfies all of them")


def counts_of(chosen: Iterable[str], values: Mapping[str, Values], limits: Sequence[GroupLimit]) -> list[int]:
    """Return the number of groups that clusters are in, by limit."""
    names = list(chosen)
    return [len({values[name][at] for name in names if name in values} - {None}) for at in range(len(limits))]


def may_join(chosen: Iterable[str], values: Mapping[str, Values], limits: Sequence[GroupLimit], name: str) -> bool:
    """Return whether a cluster can be added to chosen ones without a group too many."""
    used = _used(chosen, values, limits)
    return None not in values[name] and _is_within(values[name], used, limits)


def _first_of_groups(names: Sequence[str], values: Mapping[str, Values]) -> list[str]:
    """Return the first cluster of each combination of groups."""
    found: dict[Values, str] = {}
    for name in names:
        found.setdefault(values[name], name)
    return list(found.values())


def _complete(
    start: Sequence[str],
    names: Sequence[str],
    values: Mapping[str, Values],
    limits: Sequence[GroupLimit],
    clusters_max: int | None,
) -> tuple[str, ...] | None:
    """Return the first clusters that complete all needed groups, None if they cannot be completed after this start."""
    taken, used = list(start), _used(start, values, limits)
    for name in names:
        missing = [len(groups) < limit.least for groups, limit in zip(used, limits, strict=True)]
        if not any(missing) or (clusters_max is not None and len(taken) >= clusters_max):
            break
        own = values[name]
        adds = any(lacks and own[at] not in used[at] for at, lacks in enumerate(missing))
        if name not in taken and adds and _is_within(own, used, limits):
            taken.append(name)
            for at, group in enumerate(own):
                used[at].add(group)
    is_complete = all(len(groups) >= limit.least for groups, limit in zip(used, limits, strict=True))
    return tuple(taken) if is_complete and (clusters_max is None or len(taken) <= clusters_max) else None


def _extend(
    needed: Sequence[str],
    names: Sequence[str],
    values: Mapping[str, Values],
    limits: Sequence[GroupLimit],
    clusters_max: int | None,
) -> tuple[str, ...]:
    taken, used = set(needed), _used(needed, values, limits)
    for name in names:
        if clusters_max is not None and len(taken) >= clusters_max:
            break
        if name not in taken and _is_within(values[name], used, limits):
            taken.add(name)
            for at, group in enumerate(values[name]):
                used[at].add(group)
    return tuple([name for name in names if name in taken])


def _used(chosen: Iterable[str], values: Mapping[str, Values], limits: Sequence[GroupLimit]) -> list[set[str | None]]:
    names = list(chosen)
    return [{values[name][at] for name in names} for at in range(len(limits))]


def _is_within(own: Values, used: Sequence[set[str | None]], limits: Sequence[GroupLimit]) -> bool:
    """Return whether the groups of a cluster are in use, or may be opened."""
    return all(
        group in groups or limit.most is None or len(groups) < limit.most
        for group, groups, limit in zip(own, used, limits, strict=True)
    )
