"""Read what a change of a policy depends on: its objects, whether they have their version, and how they run."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType, template_problem
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_ROLLOUTS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.features.waves.rules.changeplan import Subject
from federation.guard.suspensions import Suspensions
from federation.planning.failover.halts import fault_of
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.followers.leaderplan import dependencies_of
from federation.planning.overrides.entries import plan_override_patch
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policymatching import Bindings, subject_of_federated
from federation.planning.status.copyhealth import Compile, Health, health_of
from federation.planning.status.delivery import ClusterDelivery, deliveries_of
from federation.planning.steps.strategy import is_paused
from federation.planning.waves.policychanges import identity_of, labels_of
from federation.runtime.controller import Key
from federation.runtime.host import Host
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy
from federation.scheduling.policyusage import PolicyKey, PolicyUsage

_SLICE = 64
"""Objects that are looked at before the event loop gets a turn."""
_PROPAGATION = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)


class Judged(NamedTuple):
    """Why an object does not have its version yet, and why it does not run well.

    `is_silent`: that is only because its clusters cannot report, for a reason of ours. `edited_at` is when its users
    last changed it, in RFC 3339; `is_held`: they hold its delivery or its rollout.
    """

    obstacle: str = ""
    problem: str = ""
    is_silent: bool = False
    edited_at: str = ""
    is_held: bool = False


class Look:
    """The objects of one policy at one moment. Each is judged at most once."""

    def __init__(self, keys: Mapping[str, Key], read: Callable[[Key], Judged]) -> None:
        self._keys = keys
        self._read = read
        self._found: dict[str, Judged] = {}

    async def prepare(self, identities: Iterable[str]) -> None:
        """Judge many objects, and let others run meanwhile."""
        for number, identity in enumerate(identities, 1):
            self._judge(identity)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    def obstacle(self, identity: str) -> str:
        """Return why an object does not have its version yet, "" if it has."""
        return self._judge(identity).obstacle

    def problem(self, identity: str) -> str:
        """Return why an object is not delivered or not healthy, "" if it is."""
        return self._judge(identity).problem

    def is_silent(self, identity: str) -> bool:
        """Return whether its problem is that its clusters cannot report, for a reason of ours."""
        return self._judge(identity).is_silent

    def is_of_users(self, identity: str, since: datetime) -> bool:
        """Return whether its own users have changed it since a time, or hold its delivery."""
        judged = self._judge(identity)
        return judged.is_held or judged.edited_at >= to_rfc3339(since)

    def _judge(self, identity: str) -> Judged:
        if identity not in self._found:
            self._found[identity] = self._read(self._keys[identity])
        return self._found[identity]


class Observer:
    """Reads caches; `cluster` returns the FederatedCluster of a name."""

    def __init__(
        self,
        host: Host,
        usage: PolicyUsage,
        policies: PolicyIndex,
        bindings: Bindings,
        cluster: Callable[[str], Object | None],
        compile_: Compile,
        edits: Mapping[str, str],
        removals: Mapping[str, str],
        suspensions: Suspensions,
    ) -> None:
        self._objects = host.objects
        self._members = host.members
        self._usage = usage
        self._policies = policies
        self._bindings = bindings
        self._cluster = cluster
        self._compile = compile_
        self._edits = edits
        """By namespace, when a policy of it was last changed, in RFC 3339."""
        self._removals = removals
        """By namespace, when something that pods need was last deleted."""
        self._suspensions = suspensions
        self._rollouts = host.informers.for_resource(FEDERATED_ROLLOUTS)

    def look(self, policy: PolicyKey) -> tuple[Sequence[Subject], Look]:
        """Return the objects that the policy applies to, and a look at them."""
        subjects, keys = [], {}
        for found in self._usage.objects_of(policy).values():
            for namespace, name in found:
                key = Key(namespace, name)
                federated = self._objects.get(key)
                if federated is None or federated["metadata"].get("deletionTimestamp") or template_problem(federated):
                    continue
                created = str(federated["metadata"].get("creationTimestamp") or "")
                subjects.append(Subject(identity_of(federated), labels_of(federated), created))
                keys[identity_of(federated)] = key
        return subjects, Look(keys, lambda key: self._read(policy, key))

    def workload_of(self, identity: str) -> tuple[str, str, str] | None:
        """Return kind, namespace and name of the user's object, None if it is gone."""
        namespace, _, name = identity.partition("/")
        federated = self._objects.get(Key(namespace, name))
        if federated is None:
            return None
        template = federated["spec"]["template"]
        return str(template["kind"]), namespace, str(template["metadata"]["name"])

    def _read(self, policy: PolicyKey, key: Key) -> Judged:
        federated = self._objects.get(key)
        type_ = self._objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None:
            return Judged()
        if policy.resource in _PROPAGATION:
            obstacle = _undecided(federated, self._policies.policy_of(federated))
        else:
            obstacle = self._without_overrides(federated, type_)
        if not obstacle and not pendingcontrollers.is_ready_for_dispatch(federated):
            obstacle = "earlier steps are pending"
        edited_at = _edited_at(federated)
        if not policy.namespace:  # a policy of the namespace is another one, and its users' own
            edited_at = max(edited_at, self._edits.get(key.namespace, ""))
        found = self._problem(obstacle, federated, type_)
        is_held = False
        if found.obstacle or found.problem:
            is_held = self._is_held(key, federated, type_)
            edited_at = max(edited_at, self._needs_edited_at(federated, type_))
        return found._replace(edited_at=edited_at, is_held=is_held)

    def _problem(self, obstacle: str, federated: Object, type_: FederatedType) -> Judged:
        silent = ""
        for problem, is_silent in self._problems(federated, type_):
            if not is_silent:
                return Judged(obstacle, problem)
            silent = silent or problem
        return Judged(obstacle, silent, is_silent=bool(silent))

    def _is_held(self, key: Key, federated: Object, type_: FederatedType) -> bool:
        """Return whether the object's own users hold its rollout, or its delivery to one of its clusters."""
        template, namespace = federated["spec"]["template"], str(federated["metadata"].get("namespace") or "")
        rollout = self._rollouts.get(key.namespace, key.name) or {}
        if (rollout.get("spec") or {}).get("paused") or is_paused(type_.resource, template):
            return True
        found = (self._suspensions.find(template, namespace, name) for name in effective_placement(federated))
        return any(each is not None and not each.is_cluster_wide for each in found)

    def _needs_edited_at(self, federated: Object, type_: FederatedType) -> str:
        """Return when the users last changed or deleted a ConfigMap, Secret, claim or account that its pods need."""
        namespace, found = str(federated["metadata"].get("namespace") or ""), ""
        for need in dependencies_of(federated["spec"]["template"], type_):
            kind = self._objects.types.for_group_kind(need.group, need.kind)
            held = self._objects.get(self._objects.key_for(kind, namespace, need.name)) if kind is not None else None
            found = max(found, self._removals.get(namespace, "") if held is None else _edited_at(held))
        return found

    def _without_overrides(self, federated: Object, type_: FederatedType) -> str:
        try:
            policies = self._bindings.resolve(subject_of_federated(federated))
        except OverrideError as error:
            return str(error)
        plan = plan_override_patch(federated, type_.controllers, policies, self._cluster)
        if plan.failures:
            return plan.failures[0]
        return "its overrides are those of the other version" if plan.patch is not None else ""

    def _problems(self, federated: Object, type_: FederatedType) -> Iterator[tuple[str, bool]]:
        """Yield what is wrong with an object, and whether a cluster cannot report anything else."""
        found = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
        if found is not None and found.get("status") == "False":
            yield str(found.get("message") or "it cannot be scheduled"), False
        placed = effective_placement(federated)
        clusters = {name: cluster for name in placed if (cluster := self._cluster(name)) is not None}
        template = federated["spec"]["template"]
        namespace, name = federated["metadata"].get("namespace") or "", template["metadata"]["name"]
        observed = {
            cluster: self._members.get_cached(cluster, type_.resource, namespace, name)
            for cluster in placed
            if self._members.is_synced(cluster, type_.resource)
        }
        for row in deliveries_of(federated, type_, observed, clusters):
            if row.is_placed and (problem := self._problem_in(row, type_, observed.get(row.cluster))):
                fault = fault_of(clusters[row.cluster]) if row.cluster in clusters else ""
                yield f"{row.cluster}: {problem}", bool(fault) or row.cluster not in observed

    def _problem_in(self, row: ClusterDelivery, type_: FederatedType, live: Object | None) -> str:
        if row.applied != "yes" or live is None:
            return row.message or "it does not have the latest version yet"
        if row.rollout is not None:
            return row.rollout.problem
        seen = health_of(type_, live, self._compile, lambda: False)
        return seen.reason if seen.health is Health.UNHEALTHY else ""


def _edited_at(federated: Mapping[str, Any]) -> str:
    """Return when users last changed the source of a federated object, in RFC 3339."""
    metadata = federated["metadata"]
    edited_at = (metadata.get("annotations") or {}).get(names.EDITED_AT) or metadata.get("creationTimestamp")
    return max(str(edited_at or ""), str(metadata.get("deletionTimestamp") or ""))


def _undecided(federated: Mapping[str, Any], policy: Policy | None) -> str:
    """Return why the last decision did not follow a version of its propagation policy, "" if it did or never will."""
    annotations = federated["metadata"].get("annotations") or {}
    if (
        policy is None
        or not policy.follows_content
        or policy.rescheduling.is_sticky
        or annotations.get(names.NO_SCHEDULING)
    ):
        return ""
    if annotations.get(names.SCHEDULING_DEFERRED_REASONS):
        return ""
    triggers = parse_object(annotations.get(names.SCHEDULING_TRIGGERS) or "") or {}
    if triggers.get("policyContentHash") == policy.content_hash and triggers.get("policyName") == policy.ref.name:
        return ""
    found = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
    if found is not None and found.get("status") == "False":
        return str(found.get("message") or "it cannot be scheduled")
    return "it is not decided with this version yet"
