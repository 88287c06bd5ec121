"""The judge of a history: what members recorded, against what users and administrators said.

Members report each change of their stores with its time. Five things must never be:

`empty`: a pod of a workload runs on a volume that began empty, while the workload has as many volumes with data as it
wants pods (or, with one claim per cluster, is placed in clusters). A volume has data once a pod ran on it, and counts as long as its claim exists, also
in a cluster that is lost, was left or is no member any more. It counts no more after somebody's word: an approved hold that names
its cluster; fewer replicas by the user, for volumes without a pod, and for those whose pods would be removed if their cluster answered; an unjoin that
removes; a policy with `failover.mode: Auto`, for what left while its cluster was lost or drained.
`gone`: a workload with volumes, or a claim with data, is deleted in a member without such a word or the deletion of its source.
`kept`: what a user kept (unjoin, orphaning) is deleted or changed, before it is placed in its cluster again.
`lost`: a field that a user wrote on an object of the host is not there.
`many`: a Deployment has more replicas than it wants, and only credentials failed.

Decision: docs/decisions/0219-histories-are-judged-by-members.md
Decision: docs/decisions/0241-fewer-replicas-are-a-word-about-volumes.md
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Object
from federation.apiserver.store.interface import Event, EventType
from federation.apiserver.store.memory import MemoryStore
from federation.planning.federatedobject.naming import federated_object_name
from federation.planning.federatedobject.placements import effective_placement, overrides_of
from federation.planning.guard.record import held_moves
from tests.support.datahistory.apps import APPS, DISK, PLURALS, key_of, missing, place_of
from tests.support.world import World
from tests.support.worldmember import Member

_EDIT_S = 30.0
"""How long after an edit members replace pods."""
_WORD_S = 180.0
"""How long after a user scaled a workload down its volumes may lose their pods."""
_PODS = "/core/pods/default/"


@dataclass(slots=True)
class Volume:
    """A claim of a member on which a pod of an application ran."""

    app: str
    member: Member
    key: str
    uid: str
    since_s: float
    clusters: set[str]
    """The names under which its member was joined since."""
    is_written_off: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the claim exists."""
        found = stored(self.member.store, self.key)
        return found is not None and found["metadata"]["uid"] == self.uid


@dataclass(slots=True)
class _Kept:
    """An object, or a pod, that a user kept in a member."""

    app: str
    member: Member
    key: str
    uid: str
    why: str
    before: str
    """The uid of the FederatedCluster, or of the federated object, that the user took it from."""
    is_final: bool
    """Whether later words of the user about the source do not reach it: its cluster has left, or it was orphaned."""


@dataclass(slots=True)
class _Words:
    """What users said about an application."""

    body: Object = field(default_factory=dict)
    """The fields that the user wrote; none while the object does not exist."""
    reduced_s: float = -1e9
    """When the user last wanted fewer replicas."""
    given_up: int = 0
    """How many replicas were wanted no more then, and were not found yet."""
    deleted_at: datetime | None = None
    """When its user last deleted it, None for never."""
    touched_s: float = 0.0
    wanted: list[tuple[float, int]] = field(default_factory=list)


class Judge:
    """Records what happens in the members of a world, and judges it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.words = {name: _Words() for name in APPS}
        self.volumes: dict[tuple[int, str], Volume] = {}
        self.findings: list[str] = []
        self._kept: dict[tuple[int, str], _Kept] = {}
        self._refuges: set[tuple[str, str]] = set()
        """Applications and members that they began in because another cluster was lost: they may return from there."""
        self._approved: set[tuple[str, str]] = set()
        self._fresh: dict[str, list[Volume]] = {}
        self.is_moved_by_others = False
        """Whether anything but credentials can have moved replicas."""
        for member in world.members.values():
            member.on_change = lambda event, member=member: self._on_change(member, event)

    @property
    def _now_s(self) -> float:
        return self._world.clock.monotonic()

    # -- what users say

    def wrote(self, app: str, body: Object) -> None:
        """Record the fields of an application that its user wrote."""
        words = self.words[app]
        replicas, before = (each.get("spec", {}).get("replicas") for each in (body, words.body))
        if words.body and replicas is not None and replicas < before:
            self._reduce(words, before - replicas)
        words.body, words.touched_s = body, self._now_s
        if replicas is not None:
            words.wanted.append((self._now_s, replicas))

    def deleted(self, app: str, *, is_kept: bool) -> None:
        """Record that the user deletes an application, or only its source."""
        self.words[app].body = {}
        if is_kept:
            for member in self._world.members.values():
                self._keep(member, app, "orphaned", _uid(federated_of(self._world, app)), is_final=True)
            return
        self.words[app].deleted_at = self._world.clock.now()
        for key, kept in list(self._kept.items()):
            if kept.app == app and not kept.is_final:
                del self._kept[key]

    def releases(self, app: str) -> None:
        """Record that the copies of an application are kept while its source stays."""
        for member in self._world.members.values() if self.words[app].body else ():
            self._keep(member, app, "the type was removed", _uid(federated_of(self._world, app)), is_final=True)

    def restored(self, said: dict[str, Object]) -> None:
        """Record that the host is as it was when these were the fields that users had written."""
        self.is_moved_by_others = True
        for app, body in said.items():
            words = self.words[app]
            if body and (fewer := replicas_in(words.body) - replicas_in(body)) > 0:
                self._reduce(words, fewer)  # the administrator wants the number of the backup
            words.body = body

    def _reduce(self, words: _Words, fewer: int) -> None:
        words.given_up = fewer + (words.given_up if self._is_reduced(words) else 0)
        words.reduced_s = self._now_s

    def _is_reduced(self, words: _Words) -> bool:
        return self._now_s - words.reduced_s < _WORD_S

    def keeps(self, member: Member, why: str, *, is_final: bool = False) -> None:
        """Record that the user keeps what the member has."""
        cluster = cluster_of(self._world, member.name)
        for app in APPS:
            if self.words[app].body and member.name in placed(self._world, app):
                self._keep(member, app, why, _uid(cluster), is_final=is_final)

    def is_out(self, member: Member) -> None:
        """Record that a member is no member any more: words about sources reach it no more."""
        for kept in self._kept.values():
            if kept.member is member:
                kept.is_final = True

    def removed(self, member: Member) -> None:
        """Record that an administrator removes what a member has."""
        self._write_off("", lambda volume: volume.member is member)
        self._approved |= {(app, member.name) for app in APPS}
        self._kept = {key: kept for key, kept in self._kept.items() if kept.member is not member}

    def approved(self, hold: str) -> None:
        """Record the approval of a hold for all that waits for it."""
        for federated in self._federated():
            app = federated["spec"]["template"]["metadata"]["name"]
            for held in held_moves(federated):
                if held.hold == hold:
                    app = "disk" if app == DISK else app
                    self._approved |= {(app, cluster) for cluster in held.clusters}
                    self._write_off(app, lambda volume, held=held: not held.clusters.isdisjoint(volume.clusters))

    def _write_off(self, app: str, is_meant: Any) -> None:
        for volume in self.volumes.values():
            if app in ("", volume.app) and is_meant(volume):
                volume.is_written_off = True

    def _keep(self, member: Member, app: str, why: str, before: str, *, is_final: bool) -> None:
        keys = [place_of(APPS[app])]
        if app == "disk":
            keys.append(key_of(PERSISTENT_VOLUME_CLAIMS, DISK))
        found = [(key, stored(member.store, key)) for key in keys]
        if found[0][1] is None or names.MANAGED_LABEL not in (found[0][1]["metadata"].get("labels") or {}):
            return
        if self._now_s - self.words[app].touched_s > _EDIT_S:  # until then the member may replace pods for an edit
            found += [(key, pod) for key, pod in pods(member) if app_of(pod) == app]
        for key, obj in found:
            if obj is not None and not obj["metadata"].get("deletionTimestamp"):
                uid = obj["metadata"]["uid"]
                self._kept[id(member), key] = _Kept(app, member, key, uid, why, before, is_final)

    # -- what members do

    def _on_change(self, member: Member, event: Event) -> None:
        _, _, plural, namespace, *_ = f"{event.key}///".split("/")
        if namespace != "default" or (plural != "pods" and plural not in PLURALS):
            return
        if event.type is EventType.DELETED:
            self._deleted(member, event.key, orjson.loads(event.value))
        elif plural == "pods":
            if b'"phase":"Running"' in event.value and b'"phase":"Running"' not in (event.previous or b""):
                self._started(member, orjson.loads(event.value))
        elif event.type is EventType.UPDATED:
            self._changed(member, event.key, event)

    def _started(self, member: Member, pod: Object) -> None:
        app = app_of(pod)
        for each in pod["spec"].get("volumes") or ():
            if app and "persistentVolumeClaim" in each:
                key = key_of(PERSISTENT_VOLUME_CLAIMS, each["persistentVolumeClaim"]["claimName"])
                claim = stored(member.store, key)
                if claim is not None and (id(member), claim["metadata"]["uid"]) not in self.volumes:
                    volume = Volume(app, member, key, claim["metadata"]["uid"], self._now_s, {member.name})
                    self.volumes[id(member), volume.uid] = volume
                    if any(self._may_leave(app, name) for name in self._world.members if name != member.name):
                        self._refuges.add((app, member.name))
                    if not self._is_one_more(volume):
                        self._fresh.setdefault(app, []).append(volume)

    def _is_one_more(self, volume: Volume) -> bool:
        """Return whether a copy that has volumes begins another one, because its user wants more replicas."""
        here = [each for each in self.volumes.values() if each.app == volume.app and each.member is volume.member]
        replicas = replicas_in(self.words[volume.app].body)
        is_copy = self._is_copied(volume.app) or (
            volume.member.name in placed(self._world, volume.app)
            and volume.member.name not in replicas_by_cluster(federated_of(self._world, volume.app))
        )
        return volume.app != "disk" and 1 < len(here) <= replicas and is_copy

    def _deleted(self, member: Member, key: str, obj: Object) -> None:
        kept = self._kept.get((id(member), key))
        if kept is not None and kept.uid == obj["metadata"]["uid"]:
            if not self._is_placed_again(kept):
                self._say("kept", f"{key} in {member.name} is deleted, although the user kept it ({kept.why})")
            return
        app = app_of(obj) if not key.startswith(_PODS) else ""
        if not app or not APPS[app].has_volumes or key.startswith("/core/"):
            volume = self.volumes.get((id(member), obj["metadata"]["uid"]))
            if volume is not None and not (volume.is_written_off or self._has_word(volume.app, member)):
                self._say("gone", f"{key} in {member.name} is deleted, with data of {volume.app}")
            return
        here = [each for each in self.volumes.values() if each.app == app and each.member is member]
        has_data = any(each.is_live and not each.is_written_off for each in here)
        if has_data and key == place_of(APPS[app]) and not (self._has_word(app, member) or self._is_earlier(app, obj)):
            self._say("gone", f"{key} in {member.name} is deleted and has volumes with data")

    def _is_earlier(self, app: str, obj: Object) -> bool:
        """Return whether a copy is of an object that its user deleted, and not of a later one of its name."""
        at = self.words[app].deleted_at
        return at is not None and from_rfc3339(obj["metadata"]["creationTimestamp"]) <= at

    def _has_word(self, app: str, member: Member) -> bool:
        words = self.words[app]
        is_said = self._is_reduced(words) or (app, member.name) in self._approved | self._refuges
        return not words.body or is_said or self._may_leave(app, member.name)

    def _may_leave(self, app: str, cluster: str) -> bool:
        """Return whether the policy lets the application leave lost, drained and unhealthy clusters, and this can be one."""
        policy = on_host(self._world, key_of(PROPAGATION_POLICIES, app))
        failover = ((policy or {}).get("spec") or {}).get("failover", {})
        if failover.get("mode") != "Auto":
            return False
        return "application" in failover or any(
            _is_emptied(state) for state in self._world.store.states(FEDERATED_CLUSTERS, "", cluster)
        )

    def _changed(self, member: Member, key: str, event: Event) -> None:
        kept = self._kept.get((id(member), key))
        if kept is None:
            return
        before, after = orjson.loads(event.previous or b"{}"), orjson.loads(event.value)
        if before.get("metadata", {}).get("uid") != kept.uid or self._is_placed_again(kept):
            return
        parts = [part for part in ("spec", "data") if before.get(part) != after.get(part)]
        if parts:
            self._say("kept", f"{key} in {member.name} is changed ({parts}), although the user kept it ({kept.why})")

    def _is_placed_again(self, kept: _Kept) -> bool:
        """Return whether a later decision places the application in the cluster, as a member: it is taken over."""
        cluster, name = cluster_of(self._world, kept.member.name), federated_name(kept.app)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            return False
        for state in self._world.store.states(FEDERATED_OBJECTS, "default", name):
            if (
                state is None
                or kept.before in (_uid(state), _uid(cluster))
                or state["metadata"].get("deletionTimestamp")
            ):
                continue
            if kept.member.name in effective_placement(state):
                return True
        return False

    def _is_used(self, volume: Volume) -> bool:
        claim = volume.key.rpartition("/")[2]
        for _, pod in pods(volume.member):
            claims = [
                each.get("persistentVolumeClaim", {}).get("claimName") for each in pod["spec"].get("volumes") or ()
            ]
            if claim in claims:
                return True
        return False

    # -- verdicts

    def check(self) -> None:
        """Judge the state of the world after a step."""
        for volume in self.volumes.values():
            volume.clusters.add(volume.member.name)
        for key, kept in list(self._kept.items()):
            found = stored(kept.member.store, kept.key)
            if found is None or found["metadata"]["uid"] != kept.uid or self._is_placed_again(kept):
                del self._kept[key]
        for app, words in self.words.items():
            if words.body:
                self._check_fields(app, words.body)
            if words.given_up and self._has_surplus(app):
                words.reduced_s = self._now_s  # no decision was possible: the word still counts
        for app, fresh in self._fresh.items():
            # What leaves now can start elsewhere at a later step, when the cluster is back or the number is another one.
            self._write_off_left(app)
            self._write_off_given_up(app)
            if fresh:
                self._check_volumes(app, fresh)

    def _has_surplus(self, app: str) -> bool:
        """Return whether more replicas are placed than the user wants."""
        return sum(replicas_by_cluster(federated_of(self._world, app)).values()) > replicas_in(self.words[app].body)

    def _write_off_left(self, app: str) -> None:
        """Write off what left its cluster because the policy lets it leave lost, drained and unhealthy ones, and return."""
        for member in self._world.members.values():
            if self._may_leave(app, member.name) or (app, member.name) in self._refuges:
                for volume in self._beyond_placement(app, member):
                    volume.is_written_off = True

    def _write_off_given_up(self, app: str) -> None:
        """Write off the volumes of replicas that the user does not want any more.

        They have no pod. In a cluster that does not answer the pods stay; there the decision says which ones are meant.
        """
        words = self.words[app]
        if not self._is_reduced(words):
            return
        self._write_off(app, lambda volume: not self._is_used(volume))
        for member in self._world.members.values():
            if member.line.mode != "up" or member.line.faults.is_active:
                for volume in self._beyond_placement(app, member)[: words.given_up]:
                    volume.is_written_off = True
                    words.given_up -= 1

    def _beyond_placement(self, app: str, member: Member) -> list[Volume]:
        """Return the volumes in a member that its placed replicas do not need."""
        here = [each for each in self.volumes.values() if each.app == app and each.member is member]
        here = sorted((each for each in here if not each.is_written_off), key=lambda each: each.since_s)
        if member.name not in placed(self._world, app):
            return here
        return here[replicas_by_cluster(federated_of(self._world, app)).get(member.name, len(here)) :]

    def _check_fields(self, app: str, body: Object) -> None:
        held = on_host(self._world, place_of(APPS[app]))
        if held is None or held["metadata"].get("deletionTimestamp"):
            self._say("lost", f"{app} is not on the host any more, and no user deleted it")
            return
        for path in missing({**body, "apiVersion": held["apiVersion"]}, held):
            self._say("lost", f"{app}{path} was written by the user and is not there")

    def _check_volumes(self, app: str, fresh: list[Volume]) -> None:
        counted = [volume for volume in self.volumes.values() if volume.app == app and volume.is_live]
        counted = [volume for volume in counted if not volume.is_written_off]
        wanted = self._wanted_volumes(app)
        if self._used(app, counted) <= wanted or self._only_grows(app, fresh, counted):
            fresh.clear()
            return
        begun = ", ".join(
            f"{volume.key.rpartition('/')[2]} in {volume.member.name} at {volume.since_s:.1f}" for volume in fresh
        )
        old = [volume for volume in counted if volume not in fresh]
        had = ", ".join(f"{volume.key.rpartition('/')[2]} in {volume.member.name}" for volume in old)
        self._say("empty", f"{app} wants {wanted} volumes and began empty: {begun}; it has data: {had}")

    def _used(self, app: str, counted: list[Volume]) -> int:
        """Return how many of the volumes replicas can use.

        A copy has no use for more than its replicas, and shares none for two of one name: one is a copy's.
        """
        if app == "disk":
            return len(counted)
        if not self._is_copied(app):
            return len({volume.key for volume in counted})
        replicas, members = replicas_in(self.words[app].body), [id(each.member) for each in counted]
        return sum(min(replicas, members.count(member)) for member in set(members))

    def _only_grows(self, app: str, fresh: list[Volume], counted: list[Volume]) -> bool:
        """Return whether each new volume is one more of a copy that has some: those of other copies do not serve it."""
        replicas, has_some = (
            replicas_in(self.words[app].body),
            {id(each.member) for each in counted if each not in fresh},
        )
        members = [id(each.member) for each in counted]
        grows = all(id(each.member) in has_some and members.count(id(each.member)) <= replicas for each in fresh)
        return grows and app != "disk" and self._is_copied(app)

    def _is_copied(self, app: str) -> bool:
        policy, federated = on_host(self._world, key_of(PROPAGATION_POLICIES, app)), federated_of(self._world, app)
        if policy is None:  # what it placed as copies stays so
            return federated is not None and not replicas_by_cluster(federated)
        return policy["spec"]["schedulingMode"] == "Duplicate" or _is_held_as_copies(federated)

    def _wanted_volumes(self, app: str) -> int:
        clusters = len(placed(self._world, app))
        if app == "disk":
            return max(1, clusters)
        replicas = replicas_in(self.words[app].body)
        return replicas * max(1, clusters) if self._is_copied(app) else replicas

    def check_sums(self, quiet_s: float) -> None:
        """Judge the replicas of `web`, which nothing but credentials has moved, a time after the last other step."""
        words = self.words["web"]
        if self.is_moved_by_others or not words.body or quiet_s < 60 or self._now_s - words.touched_s < 60:
            return
        wanted = max(count for _, count in words.wanted)
        found = {}
        for member in self._world.members.values():
            live = stored(member.store, place_of(APPS["web"]))
            if live is not None:
                found[member.name] = int(live["spec"]["replicas"])
        if _is_divided(self._world) and sum(found.values()) > wanted:
            self._say("many", f"web wants at most {wanted} replicas and has {found}; only credentials failed")

    def _say(self, kind: str, text: str) -> None:
        line = f"{kind}: {text}"
        if not any(each.endswith(line) for each in self.findings):
            self.findings.append(f"{self._now_s:.1f} {line}")

    def _federated(self) -> list[Object]:
        prefix = f"/core.kubeadmiral.io/{FEDERATED_OBJECTS.plural}/default/"
        return [obj for _, obj in page(self._world.store, prefix)]


def replicas_in(body: Object) -> int:
    """Return how many replicas the user wrote, 0 for none."""
    return int(body.get("spec", {}).get("replicas", 0))


def _is_held_as_copies(federated: Object | None) -> bool:
    """Return whether copies wait to be divided: until then their user scales each of them."""
    return bool(federated and held_moves(federated) and not overrides_of(federated, names.GLOBAL_SCHEDULER))


def replicas_by_cluster(federated: Object | None) -> dict[str, int]:
    """Return the replicas of the clusters among which an application is divided."""
    patches = overrides_of(federated or {}, names.GLOBAL_SCHEDULER)
    return {
        cluster: patch["value"]
        for cluster, each in patches.items()
        for patch in each
        if patch["path"] == "/spec/replicas"
    }


def _is_divided(world: World) -> bool:
    policy = on_host(world, key_of(PROPAGATION_POLICIES, "web"))
    return policy is not None and policy["spec"]["schedulingMode"] == "Divide"


def _is_emptied(cluster: Object | None) -> bool:
    taints = ((cluster or {}).get("spec") or {}).get("taints") or ()
    return any(taint["effect"] == "NoExecute" for taint in taints)


def stored(store: MemoryStore, key: str) -> Object | None:
    """Return an object of a store, None without it."""
    entry = store._watch_cache.get(key)
    return orjson.loads(entry.value) if entry is not None else None


def page(store: MemoryStore, prefix: str) -> list[tuple[str, Object]]:
    """Return the objects of a store whose keys begin so."""
    cache = store._watch_cache.cache
    found = cache.page(prefix, limit=0, from_key="", revision=cache.revision, undo={}).entries
    return [(entry.key, orjson.loads(entry.value)) for entry in found]


def on_host(world: World, key: str) -> Object | None:
    """Return an object of the host."""
    return stored(world.store, key)


def cluster_of(world: World, name: str) -> Object | None:
    """Return a FederatedCluster, None without it."""
    return on_host(world, f"/core.kubeadmiral.io/{FEDERATED_CLUSTERS.plural}/{name}")


def federated_name(app: str) -> str:
    """Return the name of an application's federated object."""
    return federated_object_name(app, APPS[app].resource.group_resource)


def federated_of(world: World, app: str) -> Object | None:
    """Return the federated object of an application, None without it."""
    return on_host(world, key_of(FEDERATED_OBJECTS, federated_name(app)))


def placed(world: World, app: str) -> frozenset[str]:
    """Return the clusters in which an application is placed."""
    return effective_placement(federated_of(world, app) or {})


def _uid(obj: Object | None) -> str:
    return str(obj["metadata"]["uid"]) if obj is not None else ""


def pods(member: Member) -> list[tuple[str, Object]]:
    """Return the pods of a member that are not being deleted, by key."""
    found = page(member.store, f"/core/{PODS.plural}/default/")
    return [(key, pod) for key, pod in found if not pod["metadata"].get("deletionTimestamp")]


def app_of(obj: Object) -> str:
    """Return the application of an object, "" for none."""
    name = str((obj["metadata"].get("labels") or {}).get("app", ""))
    return name if name in APPS else ""
