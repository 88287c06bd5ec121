"""Recorded decisions in another world: with other policies, prices or clusters, and with the consequences.

The recorded world goes on as it did, and each of its objects is changed on its way (`Changes`). The placement that a
decision makes here is the present one of the object's next decision. Members have reported the replicas of the recorded
placements, so the difference between both placements is added to the assumed replicas.

What the records cannot tell stays as it was: arrivals, scaling, the loss of clusters, answers of remote plugins, and
the times at which an object is decided again.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.apimachinery import dotpaths
from federation.apimachinery.errors import ConfigurationError, UnknownName
from federation.apimachinery.nearestname import did_you_mean
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import Object, Resource
from federation.planning.cost.ratelist import label_changes
from federation.planning.cost.rates import Rates, rates_from
from federation.scheduling.answers import Due
from federation.scheduling.chain import Chain
from federation.scheduling.engine import Placements
from federation.scheduling.framework.assumed import Request
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.replay.logentries import (
    AssumedChange,
    Decided,
    Entry,
    Header,
    Key,
    Result,
    WorldChange,
    from_difference,
    placed_by,
    restored,
)
from federation.scheduling.replay.projection import RECORDED, project, with_triggers
from federation.scheduling.replay.redecide import decide_again
from federation.scheduling.replay.world import ReplayWorld

_WorldKey = tuple[Resource, str, str]
HOUR_US = 3_600_000_000
KEPT = Result("Kept", "nothing that its policy follows has changed")
"""The outcome where the other world has nothing to decide."""


@dataclass(frozen=True, slots=True)
class Changes:
    """How a world differs from the recorded one."""

    objects: Mapping[_WorldKey, Object] = field(default_factory=dict)
    """Objects that replace those with their names, or are added."""
    without_clusters: frozenset[str] = frozenset()
    like: Mapping[str, str] = field(default_factory=dict)
    """Empty clusters to add, by name, and the cluster that each of them is like."""
    rates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Entries of a list of prices by cluster (`planning/cost/ratelist.py`)."""
    profile: str = ""
    """The scheduling profile of all policies; empty for their own."""

    def __bool__(self) -> bool:
        return bool(self.objects or self.without_clusters or self.like or self.rates or self.profile)


def to_changed_object(manifest: Object, chain: Chain) -> tuple[_WorldKey, Object]:
    """Return the key and the recorded parts of a manifest; ConfigurationError for a kind that no decision reads."""
    group, kind = str(manifest.get("apiVersion") or "").rpartition("/")[0], manifest.get("kind")
    read = (*RECORDED, *chain.kinds)
    resource = next((each for each in read if (each.group, each.kind) == (group, kind)), None)
    metadata = manifest.get("metadata") or {}
    if resource is None or not metadata.get("name"):
        kinds = ", ".join(sorted(each.kind for each in read))
        raise ConfigurationError(f"{kind or 'a document without kind'}: use an object with a name of one of {kinds}")
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    obj = project(resource, {**manifest, "metadata": {**metadata, "namespace": namespace}} if namespace else manifest)
    if obj is None:
        raise ConfigurationError(f"{kind} {metadata['name']}: it changes no decision")
    return (resource, namespace, str(metadata["name"])), obj


@dataclass(frozen=True, slots=True)
class Twofold:
    """One decision as it was recorded, and as it is in the other world. `request` is that of a replica, if known."""

    at_us: int
    key: Key
    projected: Object
    recorded_before: Placements
    recorded_after: Placements
    recorded: Result
    other_before: Placements
    other_after: Placements
    other: Result
    request: Mapping[str, int]
    policy: str
    replicas: int
    """Wanted in all clusters, or in each for an object that is copied."""
    recorded_cost: int
    """Billionths per hour of the placement after the decision; clusters without a price cost nothing."""
    other_cost: int
    recorded_emissions: int
    """Billionths of a gram per hour of the placement after the decision; clusters without a rate emit nothing."""
    other_emissions: int
    recorded_capacity: int
    """Allocatable thousandths of a CPU in all clusters, as of the beginning of the hour."""
    other_capacity: int
    team: str
    """The Project of the object's namespace, "" without one."""


class OtherWorld(ReplayWorld):
    """A replayed world whose objects differ from the recorded ones."""

    def __init__(
        self, header: Header, installed: PluginRegistry, chain: Chain, changes: Changes, shifts: "Shifts"
    ) -> None:
        super().__init__(header, installed, chain)
        self.recorded: dict[_WorldKey, Object] = {}
        self._changes = changes
        self._shifts = shifts
        self._rates: dict[tuple[str, str, bool], tuple[Object, Rates]] = {}
        self._capacity: tuple[int, int, int] = (-1, 0, 0)
        for key, obj in changes.objects.items():
            self.put(key, self._changed(key, obj))

    def apply(self, change: WorldChange) -> None:
        """Take over a changed object, changed as this world is."""
        resource = self.kinds.get(change.kind)
        if resource is None:
            return
        key = (resource, change.namespace, change.name)
        if change.whole is None and change.patch is None:
            self.recorded.pop(key, None)
            obj = None
        else:
            obj = self.recorded[key] = restored(self.recorded.get(key), change.whole, change.patch)
        if key not in self._changes.objects:
            self.put(key, None if obj is None else self._changed(key, obj))
        if resource == FEDERATED_CLUSTERS:
            for name, like in self._changes.like.items():
                if like == change.name:
                    added = (resource, "", name)
                    self.put(added, None if obj is None else self._changed(added, _emptied(obj, name)))

    def _changed(self, key: _WorldKey, obj: Object) -> Object | None:
        resource, _, name = key
        if resource == FEDERATED_CLUSTERS:
            if name in self._changes.without_clusters:
                return None
            if entry := self._changes.rates.get(name):
                labels = dict(obj["metadata"].get("labels") or {})
                changed = {**labels, **label_changes(labels, entry)}
                kept = {label: value for label, value in changed.items() if value is not None}
                return {**obj, "metadata": {**obj["metadata"], "labels": kept}}
        is_policy = resource in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)
        if is_policy and self._changes.profile:
            return {**obj, "spec": {**(obj.get("spec") or {}), "schedulingProfile": self._changes.profile}}
        return obj

    def check(self) -> None:
        """Raise ConfigurationError if a change names something that this world does not have."""
        known = {name for resource, _, name in self.recorded if resource == FEDERATED_CLUSTERS}
        for name in sorted({*self._changes.without_clusters, *self._changes.like.values()} - known):
            hint = did_you_mean(name, known) or f"; choose one of {', '.join(sorted(known))}"
            raise UnknownName(f"{name}: the records have no such cluster{hint}")
        profile = self._changes.profile
        if profile and (SCHEDULING_PROFILES, "", profile) not in self.objects:
            profiles = [name for resource, _, name in self.objects if resource == SCHEDULING_PROFILES]
            hint = did_you_mean(profile, profiles)
            raise UnknownName(f"{profile}: the records have no such SchedulingProfile{hint}; give it with -f")

    def cost_of(
        self,
        placed: Placements,
        request: Mapping[str, int],
        replicas: int,
        *,
        is_recorded: bool,
        prefix: str = names.PRICE_PREFIX,
    ) -> int:
        """Return the billionths per hour of a placement, by rates of the recorded or of this world: prices, or others
        whose labels begin with `prefix`.
        """
        objects, total = self.recorded if is_recorded else self.objects, 0
        for name, count in placed.items():
            cluster = objects.get((FEDERATED_CLUSTERS, "", name))
            if cluster is None:
                continue
            known = self._rates.get((prefix, name, is_recorded))
            if known is None or known[0] is not cluster:
                rates = rates_from(cluster["metadata"].get("labels") or {}, prefix)
                known = self._rates[prefix, name, is_recorded] = cluster, rates
            total += (known[1].cost_of(request) or 0) * (replicas if count is None else count)
        return total

    def team_of(self, namespace: str) -> str:
        """Return the name of the Project of a namespace, "" without one."""
        project = self.scoped.projects.of(namespace) if namespace else None
        return project.name if project is not None else ""

    def capacity(self, at_us: int) -> tuple[int, int]:
        """Return the allocatable thousandths of a CPU of the recorded and of this world, counted once an hour."""
        hour = at_us // HOUR_US
        if self._capacity[0] != hour:
            self._capacity = hour, _cpu(self.recorded), _cpu(self.objects)
        return self._capacity[1:]

    def assume(self, change: AssumedChange) -> None:
        """Take over changed assumed replicas; a new segment begins with the differences of all objects."""
        super().assume(change)
        if change.is_whole:
            self.shift(self._shifts.total())

    def shift(self, changes: Iterable[tuple[Request, Mapping[str, int]]]) -> None:
        """Add replicas that are in other clusters than members have reported."""
        for request, counts in changes:
            if counts:
                self.add_assumed(request, list(counts.items()))


def _cpu(objects: Mapping[_WorldKey, Object]) -> int:
    total = 0
    for (resource, _, _), obj in objects.items():
        if resource == FEDERATED_CLUSTERS:
            text = dotpaths.get(obj, ("status", "resources", "allocatable", "cpu"))
            with suppress(ValueError):
                total += to_milli(str(text or "0"))
    return total


def _emptied(cluster: Object, name: str) -> Object:
    """Return a cluster like another one, whose resources are all available."""
    status = dict(cluster.get("status") or {})
    if resources := status.get("resources"):
        status["resources"] = {**resources, "available": resources.get("allocatable") or {}}
    return {**cluster, "metadata": {**cluster["metadata"], "name": name}, "status": status}


class Shifts:
    """Per object, by how many replicas each cluster differs between both placements."""

    def __init__(self) -> None:
        self._of_object: dict[Key, tuple[Request, dict[str, int]]] = {}

    def put(self, key: Key, request: Request, counts: dict[str, int]) -> list[tuple[Request, Mapping[str, int]]]:
        """Record the difference of an object, and return the changes."""
        before = self._of_object.pop(key, None)
        if counts:
            self._of_object[key] = request, counts
        if before is not None and before == (request, counts):
            return []
        undone = [] if before is None else [(before[0], {name: -count for name, count in before[1].items()})]
        return [*undone, (request, counts)]

    def total(self) -> Iterable[tuple[Request, Mapping[str, int]]]:
        """Return the differences of all objects."""
        return list(self._of_object.values())


@dataclass(slots=True)
class _Course:
    """The state of an object: its last record and both placements."""

    projected: Object
    recorded: Placements
    other: Placements
    triggers: str = ""
    request: Request = ()
    policy: str = ""
    replicas: int = 0


def redecide_elsewhere(
    entries: Iterable[Entry],
    installed: PluginRegistry,
    chain: Chain,
    changes: Changes,
    since_us: int,
    until_us: int,
) -> Iterator[Twofold]:
    """Yield every recorded decision of a period, and what becomes of it in another world; ConfigurationError.

    Decisions before the period are made as they were recorded.
    """
    world: OtherWorld | None = None
    shifts = Shifts()
    courses: dict[Key, _Course] = {}
    in_segment: set[Key] = set()
    is_checked = False
    for entry in entries:
        if isinstance(entry, Header):
            world, in_segment, is_checked = OtherWorld(entry, installed, chain, changes, shifts), set(), False
            continue
        if world is None:
            raise ConfigurationError("the records do not begin with a segment")
        match entry:
            case WorldChange():
                world.apply(entry)
            case AssumedChange():
                world.assume(entry)
            case Decided():
                if not is_checked:
                    world.check()
                    is_checked = True
                known = courses.get(entry.key)
                projected = restored(
                    known.projected if entry.key in in_segment and known else None, entry.whole, entry.patch
                )
                placed: Placements = known.recorded if entry.key in in_segment and known else {}
                current = placed if entry.current is None else entry.current
                from_difference(entry, current, world.places)
                in_segment.add(entry.key)
                course = known or _Course(projected, current, current)
                if course.other == course.recorded:
                    course.other = current  # Also what somebody else has moved in between.
                courses[entry.key] = course
                course.projected = projected
                after = placed_by(entry.result, current)
                if not since_us <= entry.at_us <= until_us:
                    course.recorded = course.other = after
                    continue
                yield _decide_twice(entry, course, current, after, world, shifts, has_changes=bool(changes))


def _decide_twice(
    entry: Decided,
    course: _Course,
    current: Placements,
    after: Placements,
    world: OtherWorld,
    shifts: Shifts,
    *,
    has_changes: bool,
) -> Twofold:
    before = course.other
    other, due = _decide_here(entry, course, world, has_changes=has_changes)
    if due is not None:
        course.request = due.unit.shape.request
        course.replicas = 1 if due.unit.desired_replicas is None else due.unit.desired_replicas
        course.policy = f"{due.policy.ref.namespace}/{due.policy.ref.name}".lstrip("/")
        course.triggers = due.triggers
    course.recorded, course.other = after, placed_by(other, before)
    world.shift(shifts.put(entry.key, course.request, _difference(course)))
    request = dict(course.request)
    return Twofold(
        entry.at_us,
        entry.key,
        course.projected,
        current,
        after,
        entry.result,
        before,
        course.other,
        other,
        request,
        course.policy,
        course.replicas,
        world.cost_of(after, request, course.replicas, is_recorded=True),
        world.cost_of(course.other, request, course.replicas, is_recorded=False),
        world.cost_of(after, request, course.replicas, is_recorded=True, prefix=names.CARBON_PREFIX),
        world.cost_of(course.other, request, course.replicas, is_recorded=False, prefix=names.CARBON_PREFIX),
        *world.capacity(entry.at_us),
        world.team_of(entry.key[0]),
    )


def _decide_here(entry: Decided, course: _Course, world: OtherWorld, *, has_changes: bool) -> tuple[Result, Due | None]:
    projected = (
        with_triggers(course.projected, course.triggers) if has_changes and course.triggers else course.projected
    )
    again = decide_again(entry, projected, course.other, world)
    return (KEPT, None) if isinstance(again, str) else again


def _difference(course: _Course) -> dict[str, int]:
    clusters = {*course.recorded, *course.other}
    counts = {
        name: replicas_in(course.other, name, course.replicas) - replicas_in(course.recorded, name, course.replicas)
        for name in sorted(clusters)
    }
    return {name: difference for name, difference in counts.items() if difference}


def replicas_in(placed: Placements, name: str, replicas: int) -> int:
    """Return the replicas of a placement in a cluster; `replicas` in each cluster of an object that is copied."""
    count = placed.get(name, 0)
    return replicas if count is None else count
