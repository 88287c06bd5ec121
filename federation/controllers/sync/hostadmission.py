"""The verdicts of the host's admission about overridden objects, asked once per content and remembered.

Users override with the federation's rights, so an overridden object leaves only after the host has admitted its
creation in a dry run, as a user without rights. `is_active` is False while no admission is configured on the host:
nothing else is computed then. A verdict holds until the configuration changes, at most for `verdict_age_s_max`: what
webhooks, parameters and namespace labels decide changes unseen. The decisions are in `planning/rendering/verdicts.py`.
It lives as long as the controller.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, RequestTimeout
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Object,
)
from federation.client.client import Client
from federation.controllers.sync.propagation import Propagation
from federation.dispatch.status import ClusterStatus
from federation.planning.rendering.memberobject import Rendered
from federation.planning.rendering.takenback import taken_back
from federation.planning.rendering.verdicts import (
    ADMITTED,
    Concerns,
    Outcome,
    Verdict,
    compile_concerns,
    requester_of,
    to_mutation_verdict,
    to_verdict,
)
from federation.runtime.controller import Key
from federation.runtime.informers import Informers


@dataclass(frozen=True, slots=True)
class HostAdmissionOptions:
    """Limits of questions to the host's admission."""

    verdicts_max: int = 10_000
    """Remembered verdicts, some hundred bytes each; a forgotten one is asked again when its object is written."""
    verdict_age_s_max: float = 300.0
    """How long a verdict holds. A refused object is judged again after this time."""
    questions_in_flight_max: int = 16
    """Concurrent dry runs; each may wait for webhooks."""
    answer_timeout_s: float = 35.0
    """Longer than the longest timeout of a webhook, 30 s."""
    retry_s_min: float = 1.0
    retry_s_max: float = 60.0
    """The pause after an unanswered question; it doubles up to this one."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    verdict: Verdict
    configuration: int
    """The number of configuration changes before the question."""
    until_s: float
    failures: int = 0


_UNOBSERVED = frozenset(
    (ClusterStatus.CLUSTER_NOT_READY, ClusterStatus.ADMISSION_REFUSED, ClusterStatus.ADMISSION_FAILED)
)
"""A cluster without a cache keeps its published status."""
_Question = tuple[str, str]
"""The hash of the object to judge, and the user."""


class HostAdmission:
    """Asks and remembers. `enqueue` requeues a federated object that is held from a cluster."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        enqueue: Callable[[Key], None],
        options: HostAdmissionOptions | None = None,
    ) -> None:
        self.is_active = False
        self._client = client
        self._clock = clock
        self._enqueue = enqueue
        self._options = options or HostAdmissionOptions()
        self._concerns = Concerns()
        self._mutated = Concerns()
        self._changes = 0
        self._remembered: OrderedDict[_Question, _Remembered] = OrderedDict()
        self._slots = asyncio.Semaphore(self._options.questions_in_flight_max)
        self._held: dict[Key, Mapping[str, Verdict]] = {}
        kinds = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS, ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)
        self._informers = [informers.for_resource(kind) for kind in kinds]
        for informer in self._informers:
            informer.add_handler(self._on_configuration)

    async def wait_synced(self) -> None:
        """Return once the host's configuration is known."""
        await asyncio.gather(*(informer.wait_synced() for informer in self._informers))

    def judge(self, propagation: Propagation, cluster: str) -> Verdict | None:
        """Return the verdict about the cluster's member object, None if the host has to be asked first (`ask`)."""
        resource = propagation.type_.resource
        if not self._concerns.include(resource):
            return ADMITTED
        subject = propagation.renderer.subject(cluster)
        if subject is None:
            return ADMITTED
        question = subject.hash, requester_of(propagation.federated)
        known = self._remembered.get(question)
        now_s = self._clock.monotonic()
        if known is None or known.configuration != self._changes or known.until_s <= now_s:
            return None
        self._remembered.move_to_end(question)
        if known.verdict is not ADMITTED:
            propagation.recheck(known.until_s - now_s)
        return known.verdict

    async def ask(self, propagation: Propagation, clusters: Iterable[str]) -> None:
        """Ask the host about the objects of these clusters, once per content."""
        subjects: dict[str, Rendered] = {}
        for cluster in clusters:
            if (subject := propagation.renderer.subject(cluster)) is not None:
                subjects[subject.hash] = subject
        await asyncio.gather(*(self._ask(propagation, subject) for subject in subjects.values()))

    def track(self, propagation: Propagation) -> Mapping[str, Verdict]:
        """Return the verdicts that hold the object, by cluster, and remember the object for the next configuration.

        A cluster that cannot be observed now keeps its verdict, or the report would change with every lost connection.
        """
        before = self._held.get(propagation.key) or {}
        kept = {name: verdict for name, verdict in before.items() if propagation.statuses.get(name) in _UNOBSERVED}
        held = {**kept, **propagation.held}
        if held:
            self._held[propagation.key] = held
        else:
            self._held.pop(propagation.key, None)
        return held

    def forget(self, key: Key) -> None:
        """Forget an object that is gone or being deleted."""
        self._held.pop(key, None)

    async def _ask(self, propagation: Propagation, subject: Rendered) -> None:
        options, changes, user = self._options, self._changes, requester_of(propagation.federated)
        async with self._slots:
            verdict = await self._request(propagation, subject.object, user)
        question = subject.hash, user
        before, failures, age_s = self._remembered.pop(question, None), 0, options.verdict_age_s_max
        if verdict.outcome is Outcome.UNANSWERED:
            is_repeated = before is not None and before.configuration == changes
            failures = 1 + (before.failures if before is not None and is_repeated else 0)
            age_s = min(options.retry_s_min * 2 ** min(failures - 1, 16), options.retry_s_max)
        self._remembered[question] = _Remembered(verdict, changes, self._clock.monotonic() + age_s, failures)
        if len(self._remembered) > options.verdicts_max:
            self._remembered.popitem(last=False)

    async def _request(self, propagation: Propagation, obj: Object, user: str) -> Verdict:
        resource, timeout_s = propagation.type_.resource, self._options.answer_timeout_s
        name = obj["metadata"]["name"]
        try:
            async with asyncio.timeout(timeout_s):
                admitted = await self._client.review(resource, obj, user=user)
        except TimeoutError:
            return to_verdict(RequestTimeout(f"the host did not answer within {timeout_s:g} s"), resource, name)
        except (ApiError, ClusterError) as error:
            return to_verdict(error, resource, name)
        if not self._mutated.include(resource):
            return ADMITTED
        return to_mutation_verdict(taken_back(propagation.renderer.source_subject(), obj, admitted))

    def _on_configuration(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _version(old) == _version(new):
            return
        validating, mutating, policies, bindings = (informer.list() for informer in self._informers)
        self._concerns = compile_concerns([*validating, *mutating], policies, bindings)
        self._mutated = compile_concerns(mutating, (), ())
        self.is_active = bool(self._concerns)
        self._changes += 1
        for key in self._held:
            self._enqueue(key)


def _version(configuration: Object) -> tuple[str, int]:
    """Return what changes with every change but that of a status."""
    metadata = configuration["metadata"]
    return metadata.get("uid", ""), metadata.get("generation", 0)
