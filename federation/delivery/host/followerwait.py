"""Followers first: a workload is written to a cluster after the objects that its new pods need (docs/decisions/0014).

The same holds for the namespace of any object: a member refuses what is written before its namespace arrives there.
`FollowerReadiness` is queried before each write. A waiting workload is requeued when the follower's member object
appears or the follower's federated object changes; after `wait_s` it is written without the follower. A deleted
workload whose member objects stay waits as well, until its followers have recorded it (docs/decisions/0024).
Start times are kept in memory only: after a restart the wait starts again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from federation.apimachinery.resources import NAMESPACES, Object
from federation.delivery.host.servicewait import ServiceReadiness
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.members.propagation import BRIEF_S
from federation.delivery.rules import names
from federation.delivery.rules.facts import Hold
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.status import ClusterStatus
from federation.planning.followers.followerplan import has_recorded_kept
from federation.planning.followers.leaderplan import has_secrets, identity_of, plan_leader, secrets_of
from federation.planning.followers.orphaned import is_orphaning
from federation.planning.followers.readiness import is_awaited, is_expected, new_dependencies, status_in_cluster
from federation.planning.followers.references import Identity, Reference
from federation.runtime.controller import Key
from federation.runtime.events import WARNING
from federation.runtime.host import Host


class FollowerReadiness:
    """Decides which writes wait for followers, and requeues them. `enqueue` requeues a federated object."""

    def __init__(
        self,
        host: Host,
        member_objects: MemberObjectCache,
        kept: KeptState,
        *,
        wait_s: float,
        enqueue: Callable[[Key], None],
    ) -> None:
        self._objects = host.objects
        self._types = host.objects.types
        self._member_objects = member_objects
        self._recorder = host.recorder
        self._presence = host.presence
        self._wait_s = wait_s
        self._enqueue = enqueue
        self._services = ServiceReadiness(host, member_objects, kept)
        self._since_s: dict[Key, dict[MemberKey, float]] = kept.by_object({})
        self._release_since_s: dict[Key, float] = kept.of_deletion({})
        self._waiting: dict[Identity, set[Key]] = {}

    def wait(
        self, key: Key, federated: Object, cluster: str, desired: Mapping[str, Any], live: Object | None
    ) -> Hold | None:
        """Return the wait of a workload's write to a cluster, None when it may be written now."""
        if live is None and (waits := self._services.wait(key, federated, cluster, desired)) is not None:
            return Hold(*waits, is_brief=False)
        missing = self._missing_namespace(federated, cluster) if live is None else {}
        if not missing:
            needs = self._with_secrets(federated, cluster, desired, live)
            missing = {
                follower: reference
                for reference in needs
                if (follower := self._missing_object(federated, cluster, reference)) is not None
            }
        now_s = self._presence.present_s
        since_s = self._record_missing(key, cluster, missing, now_s)
        if not missing:
            return None
        followers = ", ".join(map(str, missing.values()))
        waited_s = now_s - since_s
        if waited_s >= self._wait_s:
            text = f'cluster "{cluster}": propagated without {followers}, missing there after {self._wait_s:g} s'
            self._recorder.event(federated, WARNING, names.EVENT_FOLLOWER_MISSING, text)
            return None
        for follower in missing:
            self._waiting.setdefault(_identity_of(follower), set()).add(key)
        is_brief = waited_s < BRIEF_S
        recheck_s = (BRIEF_S if is_brief else self._wait_s) - waited_s
        return Hold(f"waits for {followers}", recheck_s, is_brief)

    def _with_secrets(
        self, federated: Object, cluster: str, desired: Mapping[str, Any], live: Object | None
    ) -> list[Reference]:
        """Return the objects that the workload's new pods need, the Secrets of their service account included."""
        needs = dict.fromkeys(new_dependencies(federated, desired, live, self._objects.type_of(federated)))
        namespace = federated["metadata"].get("namespace", "")
        for account in list(filter(has_secrets, needs)):
            found = self._follower(namespace, account)
            needs |= dict.fromkeys(sorted(secrets_of(found, self._types.for_group_kind, frozenset((cluster,)))))
        return list(needs)

    def wait_before_release(self, key: Key, federated: Object) -> float | None:
        """Return how long a deleted workload must wait for its followers to record that they stay, or None."""
        if not is_orphaning(federated):
            return None
        leader = identity_of(federated)
        lead = plan_leader(
            federated,
            self._objects.type_of(federated),
            self._types.for_group_kind,
            lambda identity: self._objects.of_source(*identity),
        )
        late = [
            reference
            for reference, clusters in lead.followers.items()
            if not has_recorded_kept(self._follower(leader.namespace, reference), leader, clusters)
        ]
        now_s = self._presence.present_s
        waited_s = now_s - self._release_since_s.setdefault(key, now_s)
        if not late or waited_s >= self._wait_s:
            return None
        for group, kind, name in late:
            self._waiting.setdefault(Identity(group, kind, leader.namespace, name), set()).add(key)
        return self._wait_s - waited_s

    def _follower(self, namespace: str, reference: Reference) -> Object | None:
        return self._objects.of_source(reference.group, reference.kind, namespace, reference.name)

    def _missing_namespace(self, federated: Object, cluster: str) -> dict[MemberKey, Reference]:
        """Return the object's namespace if it is to be in the cluster and has not arrived there."""
        reference = Reference(NAMESPACES.group, NAMESPACES.kind, federated["metadata"].get("namespace", ""))
        type_ = self._types.for_group_kind(reference.group, reference.kind) if reference.name else None
        if type_ is None:
            return {}
        namespace = self._objects.of_source(reference.group, reference.kind, "", reference.name)
        if namespace is None or not is_awaited(namespace, cluster):
            return {}
        key = MemberKey(cluster, type_.resource, "", reference.name)
        return {key: reference} if self._member_objects.is_present(key) is False else {}

    def _missing_object(self, leader: Object, cluster: str, reference: Reference) -> MemberKey | None:
        """Return the member object of a follower if it is expected in the cluster and does not exist yet, else None."""
        type_ = self._types.for_group_kind(reference.group, reference.kind)
        namespace = leader["metadata"].get("namespace", "")
        follower = self._follower(namespace, reference)
        if type_ is None or follower is None or not is_expected(follower, leader, cluster):
            return None
        key = MemberKey(cluster, type_.resource, namespace, reference.name)
        is_present = self._member_objects.is_present(key)
        if is_present is None:
            is_present = status_in_cluster(follower, cluster) == ClusterStatus.OK
        return None if is_present else key

    def _record_missing(self, key: Key, cluster: str, missing: Mapping[MemberKey, Reference], now_s: float) -> float:
        """Record when each missing follower was first noticed in the cluster; return the latest of these times."""
        recorded = self._since_s.get(key, {})
        elsewhere = {follower: since_s for follower, since_s in recorded.items() if follower.cluster != cluster}
        here = {follower: recorded.get(follower, now_s) for follower in missing}
        if elsewhere or here:
            self._since_s[key] = elsewhere | here
        else:
            self._since_s.pop(key, None)
        return max(here.values(), default=now_s)

    def on_federated_changed(self, federated: Object) -> None:
        """Requeue the workloads that wait for this federated object as a follower."""
        if self._waiting:
            self._requeue(identity_of(federated))

    def on_member_object_added(self, key: MemberKey) -> None:
        """Requeue the workloads that wait for this object, in any cluster."""
        if self._waiting:
            self._requeue(_identity_of(key))

    def _requeue(self, follower: Identity) -> None:
        for key in self._waiting.pop(follower, ()):
            self._enqueue(key)


def _identity_of(key: MemberKey) -> Identity:
    return Identity(key.resource.group, key.resource.kind, key.namespace, key.name)
