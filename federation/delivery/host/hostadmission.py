"""The verdicts of the host's admission about overridden objects, asked once per content and user, and remembered.

Users override with the federation's rights, so an overridden object leaves only after the host has admitted its
creation in a dry run, as a user without rights and as each author of the overrides. The namespace's limits count, too.
`is_active` is False while no admission and no limit is configured on the host: nothing else is computed then. A verdict
holds until the configuration changes, at most for five minutes, because what webhooks, parameters, namespace labels and
the use of a quota decide changes unseen (`verdictcache.py`). The decisions are in `planning/rendering/verdicts.py`. It
lives as long as the controller.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, RequestTimeout
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    LIMIT_RANGES,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    RESOURCE_QUOTAS,
    VALIDATING_WEBHOOKS,
    Object,
)
from federation.client.client import Client, UserInfo
from federation.delivery.host.verdictcache import Question, VerdictCache, VerdictCacheOptions
from federation.delivery.members.propagation import Propagation
from federation.delivery.rules.status import ClusterStatus
from federation.planning.rendering.memberobject import Rendered
from federation.planning.rendering.takenback import taken_back
from federation.planning.rendering.verdicts import (
    ADMITTED,
    Concerns,
    Verdict,
    combine,
    compile_concerns,
    is_limited,
    limit_verdict,
    requesters_of,
    to_mutation_verdict,
    to_verdict,
)
from federation.runtime.controller import Key
from federation.runtime.informers import Informers


@dataclass(frozen=True, slots=True)
class HostAdmissionOptions:
    """Limits of questions to the host's admission."""

    questions_in_flight_max: int = 16
    """Concurrent dry runs; each may wait for webhooks."""
    answer_timeout_s: float = 35.0
    """Longer than the longest timeout of a webhook, 30 s."""
    grace_s: float = 1.0
    """How long a reconcile waits for answers. The object is reconciled again when a later one arrives."""
    counts_limits: bool = True
    """Whether ResourceQuotas and LimitRanges can refuse an override. An API server over HTTP would count a whole object
    beside the source of the same name."""
    verdicts: VerdictCacheOptions = field(default_factory=VerdictCacheOptions)


_LIMITS = (RESOURCE_QUOTAS, LIMIT_RANGES)
_UNOBSERVED = frozenset(
    (ClusterStatus.CLUSTER_NOT_READY, ClusterStatus.ADMISSION_REFUSED, ClusterStatus.ADMISSION_FAILED)
)
"""A cluster without a cache keeps its published status."""


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
        self._verdicts = VerdictCache(self._options.verdicts)
        self._asking: dict[Question, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(self._options.questions_in_flight_max)
        self._held: dict[Key, Mapping[str, Verdict]] = {}
        kinds = (
            VALIDATING_WEBHOOKS,
            ADMISSION_POLICIES,
            ADMISSION_POLICY_BINDINGS,
            MUTATING_WEBHOOKS,
            MUTATING_POLICIES,
            MUTATING_POLICY_BINDINGS,
        )
        self._informers = [informers.for_resource(kind) for kind in kinds]
        for informer in self._informers:
            informer.add_handler(self._on_configuration)
        self._limits: Counter[str] = Counter()
        """The number of ResourceQuotas and LimitRanges by namespace."""
        self._limiting = [informers.for_resource(kind) for kind in _LIMITS] if self._options.counts_limits else []
        for informer in self._limiting:
            informer.add_handler(self._on_limit)

    async def wait_synced(self) -> None:
        """Return once the host's configuration is known."""
        await asyncio.gather(*(informer.wait_synced() for informer in (*self._informers, *self._limiting)))

    def judge(self, propagation: Propagation, cluster: str) -> Verdict | None:
        """Return the verdict about the cluster's member object, None if the host has to be asked first (`ask`)."""
        resource, federated = propagation.type_.resource, propagation.federated
        has_limits = bool(self._limits[federated["metadata"].get("namespace", "")]) and is_limited(federated, resource)
        if not has_limits and not self._concerns.include(resource):
            return ADMITTED
        subject = propagation.renderer.subject(cluster)
        if subject is None:
            return ADMITTED
        if (verdict := limit_verdict(requesters_of(federated))) is not None:
            return verdict
        now_s = self._clock.monotonic()
        known = [self._verdicts.get(question, now_s) for question in self._questions(propagation, subject)]
        verdict = combine([None if each is None else each[0] for each in known])
        if verdict is not None and verdict is not ADMITTED:
            propagation.recheck(min(each[1] for each in known if each is not None))
        return verdict

    async def ask(self, propagation: Propagation, clusters: Iterable[str]) -> bool:
        """Ask the host about the objects of these clusters, once per content; return whether all answers are there.

        Later ones requeue the object. A slow webhook must not occupy the workers of objects that it does not concern.
        """
        tasks, now_s = set(), self._clock.monotonic()
        for cluster in clusters:
            if (subject := propagation.renderer.subject(cluster)) is None:
                continue
            for question in self._questions(propagation, subject):
                if self._verdicts.get(question, now_s) is None:
                    tasks.add(self._start(propagation, subject, question))
        if not tasks:
            return True
        answers = asyncio.ensure_future(asyncio.wait(tasks))
        timer = asyncio.ensure_future(self._clock.sleep(self._options.grace_s))
        try:
            await asyncio.wait((answers, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            answers.cancel()
            timer.cancel()
        for task in tasks:
            if task.done():
                task.result()
            else:
                task.add_done_callback(lambda _: self._enqueue(propagation.key))
        return all(task.done() for task in tasks)

    def last(self, propagation: Propagation, cluster: str) -> Verdict | None:
        """Return the verdict that held the object from the cluster so far."""
        return (self._held.get(propagation.key) or {}).get(cluster)

    async def stop(self) -> None:
        """Cancel the open questions."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

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

    def _questions(self, propagation: Propagation, subject: Rendered) -> list[Question]:
        """Return a question for each user who must be admitted, the one without rights first."""
        is_mutated = self._mutated.include(propagation.type_.resource)
        source = propagation.renderer.source_subject().hash if is_mutated else ""
        users = requesters_of(propagation.federated)
        return [Question(subject.hash, orjson.dumps(user).decode(), source) for user in users]

    def _start(self, propagation: Propagation, subject: Rendered, question: Question) -> "asyncio.Task[None]":
        """Return the task that asks the question; there is one at a time."""
        task = self._asking.get(question)
        if task is None:
            task = asyncio.create_task(self._ask(propagation, subject, question), name="sync-admission")
            self._asking[question] = task
            task.add_done_callback(partial(self._end, question))
        return task

    def _end(self, question: Question, task: "asyncio.Task[None]") -> None:
        del self._asking[question]
        if not task.cancelled():
            task.exception()  # a reconcile that waits raises it; a later one asks again

    async def _ask(self, propagation: Propagation, subject: Rendered, question: Question) -> None:
        async with self._slots:
            configuration = self._verdicts.configuration
            verdict = await self._request(propagation, subject.object, orjson.loads(question.user))
        self._verdicts.put(question, verdict, configuration, self._clock.monotonic())

    async def _request(self, propagation: Propagation, obj: Object, user: UserInfo) -> Verdict:
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
        return to_mutation_verdict(taken_back(propagation.renderer.source_subject().object, obj, admitted))

    def _on_configuration(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _version(old) == _version(new):
            return
        configured = [informer.list() for informer in self._informers]
        self._mutated = compile_concerns(*configured[3:])
        self._concerns = compile_concerns(*configured[:3]) | self._mutated
        self._judge_again()

    def _on_limit(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        namespace = (new or old or {})["metadata"]["namespace"]
        self._limits[namespace] += (new is not None) - (old is not None)
        self._limits += Counter()  # without the namespaces that have none
        self._judge_again()

    def _judge_again(self) -> None:
        self.is_active = bool(self._concerns or self._limits)
        self._verdicts.configuration += 1
        for key in self._held:
            self._enqueue(key)


def _version(configuration: Object) -> tuple[str, int]:
    """Return what changes with every change but that of a status."""
    metadata = configuration["metadata"]
    return metadata.get("uid", ""), metadata.get("generation", 0)
