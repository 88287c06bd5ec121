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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

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
    UserInfo,
)
from federation.delivery.host.verdictcache import Review, VerdictCache, VerdictCacheOptions
from federation.delivery.members.keptstate import KeptState
from federation.delivery.rules.content import Subject
from federation.delivery.rules.facts import Held
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
from federation.runtime.host import Host


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
        self, host: Host, kept: KeptState, enqueue: Callable[[Key], None], options: HostAdmissionOptions | None = None
    ) -> None:
        self.is_active = False
        self._client = host.client
        self._clock = host.clock
        self._enqueue = enqueue
        self._options = options or HostAdmissionOptions()
        self._concerns = Concerns()
        self._mutated = Concerns()
        self._verdicts = VerdictCache(self._options.verdicts)
        self._asking: dict[Review, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(self._options.questions_in_flight_max)
        self._held: dict[Key, Mapping[str, Verdict]] = kept.by_object({})
        kinds = (
            VALIDATING_WEBHOOKS,
            ADMISSION_POLICIES,
            ADMISSION_POLICY_BINDINGS,
            MUTATING_WEBHOOKS,
            MUTATING_POLICIES,
            MUTATING_POLICY_BINDINGS,
        )
        self._informers = [host.informers.for_resource(kind) for kind in kinds]
        for informer in self._informers:
            informer.add_handler(self._on_configuration)
        self._limits: Counter[str] = Counter()
        """The number of ResourceQuotas and LimitRanges by namespace."""
        self._limiting = [host.informers.for_resource(kind) for kind in _LIMITS] if self._options.counts_limits else []
        for informer in self._limiting:
            informer.add_handler(self._on_limit)

    @property
    def grace_s(self) -> float:
        """How long a reconcile waits for answers."""
        return self._options.grace_s

    async def wait_synced(self) -> None:
        """Return once the host's configuration is known."""
        await asyncio.gather(*(informer.wait_synced() for informer in (*self._informers, *self._limiting)))

    def held(self, key: Key, subject: Subject, cluster: str) -> Held | None:
        """Return what holds the cluster's member object back, None if it may leave."""
        if not self.is_active:
            return None
        verdict, left_s = self._judge(subject, cluster)
        if verdict is ADMITTED:
            return None
        if verdict is not None:
            return Held(verdict, is_open=False, recheck_after_s=left_s)
        # Until the answer arrives an object that was held counts as held, so that nothing is written for a retry.
        return Held((self._held.get(key) or {}).get(cluster), is_open=True)

    def _judge(self, subject: Subject, cluster: str) -> tuple[Verdict | None, float | None]:
        """Return the verdict and for how many seconds it holds; no verdict if the host has to be asked first."""
        resource, federated = subject.type_.resource, subject.federated
        has_limits = bool(self._limits[federated["metadata"].get("namespace", "")]) and is_limited(federated, resource)
        if not has_limits and not self._concerns.include(resource):
            return ADMITTED, None
        judged = subject.renderer.subject(cluster)
        if judged is None:
            return ADMITTED, None
        if (verdict := limit_verdict(requesters_of(federated))) is not None:
            return verdict, None
        now_s = self._clock.monotonic()
        known = [self._verdicts.get(review, now_s) for review in self._reviews(subject, judged)]
        verdict = combine([None if each is None else each[0] for each in known])
        if verdict is None or verdict is ADMITTED:
            return verdict, None
        return verdict, min(each[1] for each in known if each is not None)

    def ask(self, subject: Subject, cluster: str) -> "asyncio.Future[Any] | None":
        """Ask the host about a cluster's object, once per content and user; return the future of the answers.

        None when everything is answered. A slow webhook must not occupy the workers of objects that it does not
        concern: nobody waits for it longer than `grace_s`.
        """
        judged, now_s = subject.renderer.subject(cluster), self._clock.monotonic()
        if judged is None:
            return None
        reviews = [each for each in self._reviews(subject, judged) if self._verdicts.get(each, now_s) is None]
        tasks = [self._start(subject, judged, review) for review in reviews]
        # Several reconciles may wait for one task; none of them may cancel it.
        return asyncio.gather(*map(asyncio.shield, tasks)) if tasks else None

    async def stop(self) -> None:
        """Cancel the open questions."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def track(
        self, key: Key, statuses: Mapping[str, ClusterStatus], held: Mapping[str, Verdict]
    ) -> Mapping[str, Verdict]:
        """Return the verdicts that hold the object, by cluster, and remember the object for the next configuration.

        A cluster that cannot be observed now keeps its verdict, or the report would change with every lost connection.
        """
        before = self._held.get(key) or {}
        kept = {name: verdict for name, verdict in before.items() if statuses.get(name) in _UNOBSERVED}
        known = {**kept, **held}
        if known:
            self._held[key] = known
        else:
            self._held.pop(key, None)
        return known

    def _reviews(self, subject: Subject, judged: Rendered) -> list[Review]:
        """Return a review for each user who must be admitted, the one without rights first."""
        is_mutated = self._mutated.include(subject.type_.resource)
        source = subject.renderer.source_subject().hash if is_mutated else ""
        users = requesters_of(subject.federated)
        return [Review(judged.hash, orjson.dumps(user).decode(), source) for user in users]

    def _start(self, subject: Subject, judged: Rendered, review: Review) -> "asyncio.Task[None]":
        """Return the task that asks the host; there is one at a time for a review."""
        task = self._asking.get(review)
        if task is None:
            task = asyncio.create_task(self._ask(subject, judged, review), name="sync-admission")
            self._asking[review] = task
            task.add_done_callback(partial(self._end, review))
        return task

    def _end(self, review: Review, task: "asyncio.Task[None]") -> None:
        del self._asking[review]
        if not task.cancelled():
            task.exception()  # a reconcile that waits raises it; a later one asks again

    async def _ask(self, subject: Subject, judged: Rendered, review: Review) -> None:
        async with self._slots:
            configuration = self._verdicts.configuration
            verdict = await self._request(subject, judged.object, orjson.loads(review.user))
        self._verdicts.put(review, verdict, configuration, self._clock.monotonic())

    async def _request(self, subject: Subject, obj: Object, user: UserInfo) -> Verdict:
        resource, timeout_s = subject.type_.resource, self._options.answer_timeout_s
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
        return to_mutation_verdict(taken_back(subject.renderer.source_subject().object, obj, admitted))

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
    """Return the uid and generation of a configuration: a change of its status keeps both."""
    metadata = configuration["metadata"]
    return metadata.get("uid", ""), metadata.get("generation", 0)
