"""A model of a divided workload: asynchronous members, a control plane that plans its steps, and a count of pods.

Members act late, on old specifications, and in any order that Kubernetes allows. Observations, requests and answers are
delayed or lost. `Ledger` counts what the control plane has to answer for: each available pod that is lost without it is
a debt, each pod that is surplus without it an excess, and the next available or deleted pod pays for it. A pod counts
as available once the control plane could observe it, and as present until the control plane could observe its end.
"""

import copy
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.apimachinery.resources import Object, Resource
from federation.planning.rendering.memberobject import Rendered, finish, template_revision
from federation.planning.steps.memberstate import (
    is_observed,
    replicas_of,
    to_departing,
    to_stepped,
    to_target,
    to_unobserved,
)
from federation.planning.steps.steps import UNKNOWN_PODS, Target, Unobserved, plan_steps
from federation.planning.steps.strategy import ORDERED, strategy_of


class BudgetError(AssertionError):
    """The budget was exceeded by a decision of the control plane."""


@dataclass
class Ledger:
    """The bounds, and how far unplanned losses and late requests exceed them."""

    low: int = 0
    high: int = 0
    debt: int = 0
    excess: int = 0

    def bound(self, low: int, high: int) -> None:
        """Set new bounds. What was decided for the old ones may still happen."""
        self.debt += max(0, low - self.low)
        self.excess += max(0, self.high - high)
        self.low, self.high = low, high


@dataclass
class Pod:
    """A pod of the model."""

    revision: str
    is_ready: bool = False


@dataclass
class Member:
    """One cluster: the member object in its API server, its controller, and its pods, the lowest ordinal first."""

    name: str
    live: Object | None = None
    seen: Object | None = None
    """The member object that its controller observed last."""
    scaled: int = 0
    """The replicas that the controller has acted on."""
    pods: list[Pod] = field(default_factory=list)
    is_down: bool = False
    revision: int = 0
    available: int = 0
    """Available pods that the control plane could observe."""
    present: int = 0
    """Pods whose end the control plane could not observe."""

    @property
    def ready(self) -> int:
        """The available pods."""
        return sum(pod.is_ready for pod in self.pods)


@dataclass
class Request:
    """A write that is on its way."""

    body: Object | None
    is_applied: bool = False


class Model:
    """Members and their control plane."""

    def __init__(self, resource: Resource, rng: random.Random, template: Object, clusters: list[str]) -> None:
        self.resource = resource
        self.rng = rng
        self.template = template
        self.members = {name: Member(name) for name in clusters}
        self.wanted: dict[str, int] = {}
        self.autoscaled: set[str] = set()
        self.ledger = Ledger()
        self.views: dict[str, Object | None] = dict.fromkeys(clusters)
        self.is_ready: dict[str, bool] = dict.fromkeys(clusters, True)
        self.requests: dict[str, Request] = {}
        self.unanswered: set[str] = set()
        self.unobserved: dict[str, Unobserved] = {}
        self.unknown: set[str] = set()
        """Members that were not observed since the control plane has started."""
        self.digests: dict[str, str] = {}
        self.recorded: set[str] = set()
        self.writes = 0
        self.early = 0
        """Replacements of unavailable pods that a StatefulSet may have created early."""
        self.trace: list[str] = []

    # -- bounds

    def _range(self, member: Member) -> tuple[int, int]:
        """Return the fewest available pods and the most pods that what was sent to a member may still lead to."""
        bodies = [member.live, member.seen]
        is_emptied = False
        for request in (self.requests.get(member.name), self.late[1] if self.late else None):
            if request is not None and not request.is_applied:
                bodies.append(request.body)
                is_emptied = is_emptied or request.body is None
        specs = [body for body in bodies if body is not None]
        if not specs:
            return 0, member.present
        counts = [replicas_of(spec) for spec in specs]
        limits = [strategy_of(self.resource, spec).limits(replicas_of(spec)) for spec in specs]
        images = {spec["spec"]["template"]["image"] for spec in specs} | {pod.revision for pod in member.pods}
        is_updating = len(images) > 1
        low, high, available = min(counts), max(counts), member.available
        if is_updating or self.resource in ORDERED:
            available -= high - low
        if is_updating:
            low -= max(limit.unavailable for limit in limits)
            high += max(limit.surge for limit in limits)
        least = 0 if is_emptied or member.is_down else max(0, min(available, low))
        return least, max(member.present, high)

    def _pay(self, available: int, gone: int) -> None:
        """Let new available pods pay debts, and deleted ones excesses, as far as earlier decisions cannot take them."""
        ledger, ranges = self.ledger, [self._range(member) for member in self.members.values()]
        least, most = (sum(bounds) for bounds in zip(*ranges, strict=True))
        ledger.debt = max(ledger.debt - available, min(ledger.debt, max(0, ledger.low - least)))
        ledger.excess = max(ledger.excess - gone, min(ledger.excess, max(0, most - ledger.high)))

    def total_ready(self) -> int:
        return sum(member.available for member in self.members.values())

    def total_pods(self) -> int:
        return sum(
            min(member.present, self.wanted.get(name, 0)) if self._is_given_up(name) else member.present
            for name, member in self.members.items()
            if name not in self.autoscaled or name in self.wanted
        )

    def _is_given_up(self, name: str) -> bool:
        return self.members[name].is_down or not self.is_ready[name]

    def rebound(self) -> None:
        """Compute the bounds after a change of what is wanted."""
        wanted = {name: self._wanted_in(name) for name in self.wanted}
        total = sum(wanted.values())
        is_steered = not self.autoscaled & wanted.keys()
        replicas = replicas_of(self.template) if is_steered else total
        limits = strategy_of(self.resource, self.template).limits(min(replicas, total))
        self.ledger.bound(min(replicas, total) - limits.unavailable, max(replicas, total) + limits.surge)

    def _wanted_in(self, name: str) -> int:
        live = self.members[name].live
        return replicas_of(live) if name in self.autoscaled and live is not None else self.wanted[name]

    def check_ready(self, what: str) -> None:
        if self.total_ready() + self.ledger.debt < self.ledger.low:
            raise BudgetError(f"{what}: {self.total_ready()} ready, {self.ledger}\n" + self.describe())

    def check_pods(self, what: str) -> None:
        total = self.total_pods() - self.early
        if total > self.ledger.high + self.ledger.excess:
            raise BudgetError(f"{what}: {total} pods, {self.ledger}\n" + self.describe())

    def _created(self, member: Member, revision: str) -> None:
        member.pods.append(Pod(revision))
        if len(member.pods) > member.present:
            member.present = len(member.pods)
            self.check_pods(f"{member.name} creates a pod")

    def _deleted(self, member: Member, pod: Pod) -> None:
        member.pods.remove(pod)
        self._lost(member, f"{member.name} deletes a pod")

    def _lost(self, member: Member, what: str) -> None:
        if member.ready < member.available:
            member.available = member.ready
            self.check_ready(what)

    # -- what members do

    def get_ready(self, member: Member) -> None:
        waiting = [pod for pod in member.pods if not pod.is_ready]
        if waiting and not member.is_down:
            pod = waiting[0] if self.resource in ORDERED else self.rng.choice(waiting)
            pod.is_ready = True

    def lose(self, member: Member) -> None:
        running = [pod for pod in member.pods if pod.is_ready]
        if running and not member.is_down:
            self.rng.choice(running).is_ready = False
            self._mourn(member)

    def _mourn(self, member: Member) -> None:
        """Count available pods that are lost without a decision as a debt."""
        ready = 0 if member.is_down else member.ready
        self.ledger.debt += max(0, member.available - ready)
        member.available = min(member.available, ready)

    def act(self, member: Member, *, is_eager: bool = False) -> None:
        """Let the member's controller look at the object and take some of its steps."""
        if member.is_down or member.live is None:
            return
        if member.seen is None or is_eager or self.rng.random() < 0.8:
            member.seen = member.live
        spec, replicas = member.seen["spec"], replicas_of(member.seen)
        revision = spec["template"]["image"]
        if self.resource in ORDERED:
            self._act_ordered(member, replicas, revision, is_eager=is_eager)
        else:
            self._act_unordered(member, replicas, revision, is_eager=is_eager)
        if is_eager or self.rng.random() < 0.7:
            self.report(member)

    def _goes_on(self, *, is_eager: bool) -> bool:
        return is_eager or self.rng.random() < 0.7

    def _act_ordered(self, member: Member, replicas: int, revision: str, *, is_eager: bool) -> None:
        while len(member.pods) > replicas and self._goes_on(is_eager=is_eager):
            self._deleted(member, member.pods[-1])
        while len(member.pods) < replicas and self._goes_on(is_eager=is_eager):
            self._created(member, revision)
        unavailable = strategy_of(self.resource, member.seen or {}).limits(replicas).unavailable
        old = [pod for pod in member.pods if pod.revision != revision]
        ready = sum(pod.is_ready for pod in member.pods)
        for pod in reversed(old):
            if pod.is_ready and ready <= replicas - unavailable:
                break
            if not self._goes_on(is_eager=is_eager):
                break
            place = member.pods.index(pod)
            member.pods[place] = Pod(revision)
            ready -= pod.is_ready
            self._lost(member, f"{member.name} replaces a pod")

    def _act_unordered(self, member: Member, replicas: int, revision: str, *, is_eager: bool) -> None:
        limits = strategy_of(self.resource, member.seen or {}).limits(replicas)
        pods = member.pods
        old = [pod for pod in pods if pod.revision != revision]
        if old and replicas < member.scaled:
            # Replicas are removed from all revisions in proportion, available or not.
            for _ in range(min(member.scaled - replicas, max(0, len(pods) - replicas - limits.surge))):
                self._deleted(member, self.rng.choice(pods))
        if old and replicas > member.scaled:
            for _ in range(min(replicas - member.scaled, max(0, replicas + limits.surge - len(pods)))):
                self._created(member, self.rng.choice([revision, old[0].revision]))
        member.scaled = replicas
        while self._goes_on(is_eager=is_eager):
            old = [pod for pod in pods if pod.revision != revision]
            new = len(pods) - len(old)
            ready = sum(pod.is_ready for pod in pods)
            if not old:
                if len(pods) > replicas:
                    self._deleted(member, min(pods, key=lambda pod: pod.is_ready))
                elif len(pods) < replicas:
                    self._created(member, revision)
                else:
                    return
            elif new < replicas and len(pods) < replicas + limits.surge:
                self._created(member, revision)
            elif (bad := [pod for pod in old if not pod.is_ready]) and len(pods) > replicas - limits.unavailable:
                self._deleted(member, bad[0])
            elif (good := [pod for pod in old if pod.is_ready]) and ready > replicas - limits.unavailable:
                self._deleted(member, good[0])
            else:
                return

    def report(self, member: Member) -> None:
        """Publish the status."""
        if member.live is None or member.seen is None:
            return
        revision = member.seen["spec"]["template"]["image"]
        status = {
            "observedGeneration": member.seen["metadata"]["generation"],
            "replicas": len(member.pods),
            "updatedReplicas": sum(pod.revision == revision for pod in member.pods),
            "availableReplicas": sum(pod.is_ready for pod in member.pods),
        }
        self._store(member, {**member.live, "status": status})

    def _store(self, member: Member, obj: Object) -> None:
        member.revision += 1
        member.live = {**obj, "metadata": {**obj["metadata"], "resourceVersion": member.revision}}

    # -- requests and observations

    def apply(self, name: str) -> None:
        """Let the request to a member take effect."""
        request, member = self.requests[name], self.members[name]
        if request.is_applied or member.is_down:
            return
        request.is_applied = True
        if request.body is None:
            self._remove(member)
            return
        body = copy.deepcopy(request.body)
        live = member.live
        if live is not None and name in self.autoscaled:
            body["spec"]["replicas"] = replicas_of(live)
        generation = 1 if live is None else live["metadata"]["generation"] + (live["spec"] != body["spec"])
        body["metadata"]["generation"] = generation
        if live is not None and "status" in live:
            body["status"] = live["status"]
        self._store(member, body)
        if name in self.autoscaled:
            self.rebound()

    def _remove(self, member: Member) -> None:
        member.live = member.seen = None
        member.scaled = 0
        member.pods = []
        member.revision += 1
        self._lost(member, f"{member.name} loses its object")

    def answer(self, name: str) -> None:
        """Let the control plane read the answer to its request."""
        if self.requests[name].is_applied:
            del self.requests[name]
            self.unanswered.discard(name)
            self.observe(name)

    def time_out(self, name: str) -> None:
        """Let the control plane give up on the answer. The request may still take effect before the next one."""
        request = self.requests[name]
        if self.rng.random() < 0.5:
            self.apply(name)
        if not request.is_applied and self.rng.random() < 0.5:
            request.is_applied = True  # lost
        del self.requests[name]
        if request.body is not None:
            self.unanswered.add(name)
            if not request.is_applied:
                self.late = (name, request)

    late: tuple[str, Request] | None = None

    def apply_late(self) -> None:
        """Apply a request that has timed out at its sender."""
        if self.late is not None and self.late[0] not in self.requests:
            name, request = self.late
            self.requests[name] = request
            self.apply(name)
            del self.requests[name]
        self.late = None

    def observe(self, name: str) -> None:
        """Let the control plane's cache catch up."""
        member = self.members[name]
        if member.is_down:
            return
        self.views[name] = member.live
        self.unknown.discard(name)
        held = ((member.live or {}).get("metadata") or {}).get("annotations") or {}
        if member.live is not None and held.get(names.TEMPLATE_HASH) == self.digests.get(name):
            self.unanswered.discard(name)
        status = (member.live or {}).get("status") or {}
        available = min(member.ready, status.get("availableReplicas", 0))
        gained, member.available = max(0, available - member.available), max(available, member.available)
        present = max(len(member.pods), status.get("replicas", 0))
        gone, member.present = max(0, member.present - present), min(present, member.present)
        self._pay(gained, gone)

    # -- the control plane

    def rendered(self, name: str) -> Rendered:
        spec = {**self.template["spec"], "replicas": self.wanted[name]}
        obj = {**self.template, "spec": spec}
        return finish(obj, {names.TEMPLATE_REVISION: template_revision(obj)})

    def _targets(self) -> list[Target]:
        found = []
        for name in sorted(self.wanted.keys() | self.recorded):
            live = self.views[name]
            if name in self.unknown and self.is_ready[name]:
                gone = name not in self.wanted
                found.append(Target(name, self.wanted.get(name, 0), pods=UNKNOWN_PODS, is_departing=gone))
                continue
            unsettled = name in self.requests or name in self.unanswered
            if name in self.unobserved and not unsettled and (live is None or is_observed(live)):
                del self.unobserved[name]
            found.append(
                to_target(
                    self.resource,
                    name,
                    self.rendered(name) if name in self.wanted else None,
                    live,
                    keeps_replicas=name in self.autoscaled,
                    is_answering=self.is_ready[name],
                    unobserved=self.unobserved.get(name),
                )
            )
        return found

    def reconcile(self) -> int:
        """Plan the steps and send what differs; return the number of requests."""
        targets = self._targets()
        if self.resource in ORDERED:
            # Replacements of unavailable pods come first, because those cannot be selected for deletion.
            early = (min(t.replicas - t.wanted, t.replicas - t.available) for t in targets if t.wanted < t.replicas)
            self.early = max(self.early, sum(max(0, count) for count in early))
        strategy = strategy_of(self.resource, self.template)
        steps = plan_steps(replicas_of(self.template), strategy, targets)
        sent = 0
        for target in targets:
            name, live, step = target.cluster, self.views[target.cluster], steps[target.cluster]
            if name in self.requests or name in self.unknown or not self.is_ready[name]:
                continue
            if name not in self.wanted:
                if live is None:
                    if name in self.unanswered:
                        self._confirm(name)
                        sent += 1
                    continue
                if step.replicas and (replicas_of(live) != step.replicas or name in self.unanswered):
                    desired = to_departing(live, self.resource, step.replicas)
                elif step.replicas:
                    continue
                else:
                    self._send(name, None, live)
                    sent += 1
                    continue
            elif live is None and not step.replicas and self.wanted[name]:
                if name in self.unanswered:
                    self._confirm(name)
                    sent += 1
                continue
            else:
                if not target.is_steered:
                    body = self.rendered(name).object
                    step = type(step)(replicas_of(body), step.gets_template, step.limits)
                desired = to_stepped(self.resource, self.rendered(name), live, step)
                if live is not None and not target.is_steered:
                    desired = Rendered(
                        {**desired.object, "spec": {**desired.object["spec"], "replicas": replicas_of(live)}},
                        desired.hash,
                    )
            if live is None and name in self.unanswered and self.digests.get(name) != desired.hash:
                self._confirm(name)
                sent += 1
                continue
            held = (live or {"metadata": {}})["metadata"].get("annotations") or {}
            if live is None or held.get(names.TEMPLATE_HASH) != desired.hash or name in self.unanswered:
                self._send(name, desired.object, live)
                sent += 1
        return sent

    def _confirm(self, name: str) -> None:
        """Ask the member whether a write without an answer has created the object."""
        if not self.members[name].is_down:
            if self.late is not None and self.late[0] == name:
                self.late = None
            self.unanswered.discard(name)
            self.observe(name)

    def _send(self, name: str, body: Object | None, live: Object | None) -> None:
        self.writes += 1
        self.recorded.add(name)
        if self.late is not None and self.late[0] == name:
            self.late = None
        if body is not None:
            self.unobserved[name] = to_unobserved(self.resource, self.unobserved.get(name), live, body)
            self.digests[name] = body["metadata"]["annotations"][names.TEMPLATE_HASH]
        self.requests[name] = Request(body)
        spec = (body or {}).get("spec") or {}
        self.trace.append(f"send {name} {spec.get('replicas')} {(spec.get('template') or {}).get('image')}")

    def restart(self) -> None:
        """Replace the control plane. Requests on their way have taken effect or are lost before it reads anything."""
        for name in list(self.requests):
            if self.rng.random() < 0.5:
                self.apply(name)
        self.apply_late()
        self.requests.clear()
        self.unanswered.clear()
        self.unobserved.clear()
        for name, member in self.members.items():
            if not member.is_down:
                # Reading all caches takes longer than a member's controller needs to see its object.
                member.seen = member.live
                if member.live is not None:
                    self.act(member)
            self.views[name] = None
            self.unknown.add(name)
            self.observe(name)

    # -- the world outside

    def set_template(self, spec: Mapping[str, Any], replicas: int) -> None:
        self.template = {**self.template, "spec": {**self.template["spec"], **spec, "replicas": replicas}}

    def place(self, wanted: dict[str, int]) -> None:
        """Apply a decision of the scheduler. An autoscaler's pods count only in clusters of the placement."""
        before, returning = self.total_pods(), self.autoscaled & wanted.keys() - self.wanted.keys()
        self.wanted = wanted
        members = (self.members[name] for name in returning)
        missing = sum(max(0, self._range(member)[1] - member.present) for member in members)
        self.ledger.excess += max(0, self.total_pods() + missing - before)
        self.rebound()

    def take_down(self, name: str) -> None:
        member = self.members[name]
        member.is_down = True
        self._mourn(member)

    def bring_back(self, name: str) -> None:
        member = self.members[name]
        if member.is_down or not self.is_ready[name]:
            before = self.total_pods()
            member.is_down, self.is_ready[name] = False, True
            missing = max(0, self._range(member)[1] - member.present)
            self.ledger.excess += max(0, self.total_pods() + missing - before)
            self.observe(name)

    def probe(self, name: str) -> None:
        """Let the control plane notice whether a member answers."""
        if self.members[name].is_down:
            self.is_ready[name] = False
        else:
            self.bring_back(name)

    def autoscale(self, name: str, replicas: int) -> None:
        """Let an autoscaler in a member set the replicas."""
        member = self.members[name]
        if name in self.autoscaled and member.live is not None and not member.is_down and name in self.wanted:
            live = copy.deepcopy(member.live)
            live["spec"]["replicas"] = replicas
            live["metadata"]["generation"] += 1
            self._store(member, live)
            self.rebound()

    def is_done(self) -> bool:
        """Return whether every cluster has what is wanted."""
        for name, member in self.members.items():
            if name not in self.wanted:
                if member.live is not None:
                    return False
                continue
            body = self.rendered(name).object["spec"]
            if member.live is None:
                return False
            held = dict(member.live["spec"])
            if name in self.autoscaled:
                held["replicas"] = body["replicas"]
            if held != body or len(member.pods) != replicas_of(member.live):
                return False
            if any(pod.revision != body["template"]["image"] or not pod.is_ready for pod in member.pods):
                return False
        return True

    def describe(self) -> str:
        lines = [f"wanted {self.wanted} of {self.template['spec']}", *self.trace[-40:]]
        for name, member in self.members.items():
            pods = " ".join(f"{pod.revision}{'+' if pod.is_ready else '-'}" for pod in member.pods)
            spec = (member.live or {}).get("spec")
            lines.append(f"{name}: down={member.is_down} {spec} {(member.live or {}).get('status')} [{pods}]")
        return "\n".join(lines)
