"""What the host is asked about overridden objects, how often, and what holds them back meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.support.member_world import a_deployment
from tests.unit.delivery.host.hosting import Host, a_host

from federation.api import names
from federation.apimachinery.errors import ClusterUnreachable, Forbidden
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    RESOURCE_QUOTAS,
    VALIDATING_WEBHOOKS,
    Object,
)
from federation.client.client import Client, Request
from federation.client.local import LocalTransport
from federation.delivery.host.hostadmission import HostAdmission, HostAdmissionOptions
from federation.delivery.rules.content import Subject
from federation.delivery.rules.facts import Held
from federation.delivery.rules.status import ClusterStatus
from federation.planning.authors import AUTHORS_MAX
from federation.planning.rendering.memberobject import Renderer
from federation.planning.rendering.verdicts import Outcome, Verdict
from federation.runtime.controller import Key
from federation.runtime.informers import Informers

KEY = Key("default", "web-deployments.apps")
REFUSED = Verdict(Outcome.REFUSED, "no")
OPEN = Held(None, is_open=True)
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"ports": [{"port": 80}]},
}


class Judge(LocalTransport):
    """The host's connection: reviews wait for `is_open` and are answered with `answer`."""

    def __init__(self, host: Host) -> None:
        super().__init__(host.client.transport._registry)
        self.asked: list[tuple[str, Object]] = []
        """The user and the object of each review."""
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.answer: Exception | dict[str, Any] = {}
        """An error, or what mutating admission makes of the spec."""

    async def request(self, request: Request) -> Object:
        if not request.is_review:
            return await super().request(request)
        assert request.user is not None
        obj = orjson.loads(request.body)
        self.asked.append((request.user["username"], obj))
        await self.is_open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return {**obj, "spec": {**obj["spec"], **self.answer}}


class Court:
    """The admission of a host, and the object to judge: a Deployment that a user overrides in m1 and m2."""

    def __init__(self, host: Host, options: HostAdmissionOptions) -> None:
        self.host, self.judge = host, Judge(host)
        self.admission = HostAdmission(
            replace(host.wired, client=Client(self.judge)), host.kept, host.enqueued.append, options
        )

    def subject(self, template: Object | None = None, replicas: int = 5, **annotations: str) -> Subject:
        template = template or a_deployment("web")
        patch = {"op": "add", "path": "/spec/minReadySeconds", "value": replicas}
        overrides = [{"cluster": cluster, "patches": [patch]} for cluster in ("m1", "m2")]
        federated: Object = {
            "metadata": {"name": KEY.name, "namespace": "default", "annotations": annotations},
            "spec": {
                "template": template,
                "overrides": [{"controller": names.OVERRIDE_CONTROLLER, "clusters": overrides}],
            },
        }
        group = template["apiVersion"].rpartition("/")[0]
        type_ = self.host.objects.types.for_group_kind(group, template["kind"])
        assert type_ is not None
        return Subject(federated, type_, Renderer(federated, type_))

    async def configure(self, resource: Any, obj: Object) -> Object:
        """Create a configuration of admission, and wait until it counts."""
        before = self.admission._verdicts.configuration
        created = await self.host.client.create(
            resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        )
        await self.host.until(lambda: self.admission._verdicts.configuration > before)
        return created

    async def answered(self, subject: Subject, cluster: str = "m1") -> Held | None:
        """Ask, wait for the answers, and return what holds the object."""
        if (future := self.admission.ask(subject, cluster)) is not None:
            await future
        return self.admission.held(KEY, subject, cluster)


def a_webhook(**rule: Any) -> Object:
    rules = [
        {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], **rule}
    ]
    hook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": rules,
    }
    return {"metadata": {"name": "guard"}, "webhooks": [hook]}


A_QUOTA = {"metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": {"services": "1"}}}


@asynccontextmanager
async def a_court(**options: Any) -> AsyncIterator[Court]:
    async with a_host() as host:
        court = Court(host, HostAdmissionOptions(**options))
        await court.admission.wait_synced()
        yield court
        await court.admission.stop()


async def test_without_admission_on_the_host_nothing_is_held() -> None:
    async with a_court() as court:
        assert not court.admission.is_active
        assert court.admission.held(KEY, court.subject(), "m1") is None
        await court.configure(VALIDATING_WEBHOOKS, a_webhook(resources=["daemonsets"]))
        assert court.admission.is_active
        assert court.admission.held(KEY, court.subject(), "m1") is None, "it is about other kinds"
        assert court.judge.asked == []


async def test_an_override_leaves_after_the_host_has_admitted_it_once_for_all_clusters() -> None:
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        subject = court.subject()
        assert court.admission.held(KEY, subject, "m1") == OPEN
        assert await court.answered(subject) is None
        assert court.admission.held(KEY, subject, "m2") is None
        assert court.admission.ask(subject, "m2") is None
        assert court.admission.held(KEY, subject, "m3") is None, "nothing is overridden there"
        assert court.admission.ask(subject, "m3") is None
        ((user, obj),) = court.judge.asked
        assert user == names.OVERRIDE_POLICY_USER
        assert obj["spec"]["minReadySeconds"] == 5
        assert court.admission.held(KEY, court.subject(replicas=6), "m1") == OPEN, "another override"


async def test_a_refusal_holds_for_five_minutes_and_is_asked_again() -> None:
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.answer = Forbidden("no")
        subject = court.subject()
        assert await court.answered(subject) == Held(REFUSED, is_open=False, recheck_after_s=300.0)
        await court.host.clock.advance(299)
        assert await court.answered(subject) == Held(REFUSED, is_open=False, recheck_after_s=1.0)
        assert len(court.judge.asked) == 1
        await court.host.clock.advance(1)
        assert court.admission.held(KEY, subject, "m1") == OPEN
        court.judge.answer = {}
        assert await court.answered(subject) is None


async def test_every_author_must_be_admitted() -> None:
    authors = [{"username": name, "groups": ["dev"]} for name in ("ann", "bob")]
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        subject = court.subject(**{names.OVERRIDE_AUTHORS: orjson.dumps(authors).decode()})
        assert await court.answered(subject) is None
        assert [user for user, _ in court.judge.asked] == [names.OVERRIDE_POLICY_USER, "ann", "bob"]
        await court.host.clock.advance(200)
        more = [*authors, {"username": "eve", "groups": []}]
        court.judge.answer = Forbidden("no")
        subject = court.subject(**{names.OVERRIDE_AUTHORS: orjson.dumps(more).decode()})
        assert await court.answered(subject) == Held(REFUSED, is_open=False, recheck_after_s=100.0), (
            "the answers about the others end before that"
        )
        assert [user for user, _ in court.judge.asked[3:]] == ["eve"]


async def test_one_refusal_is_enough_whoever_else_has_to_be_asked() -> None:
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.answer = Forbidden("no")
        await court.answered(court.subject())
        subject = court.subject(**{names.OVERRIDE_AUTHORS: '[{"username": "ann", "groups": []}]'})
        assert court.admission.held(KEY, subject, "m1") == Held(REFUSED, is_open=False, recheck_after_s=300.0)


async def test_more_authors_than_the_host_is_asked_about_are_refused() -> None:
    authors = [{"username": f"user-{number}", "groups": []} for number in range(AUTHORS_MAX + 1)]
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        held = court.admission.held(
            KEY, court.subject(**{names.OVERRIDE_AUTHORS: orjson.dumps(authors).decode()}), "m1"
        )
        assert held is not None
        assert held.verdict is not None
        assert held.verdict.outcome is Outcome.REFUSED
        assert not held.is_open
        assert court.judge.asked == []


async def test_reconciles_that_wait_for_one_answer_share_the_question_and_do_not_cancel_it() -> None:
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.is_open.clear()
        subject = court.subject()
        first, second = court.admission.ask(subject, "m1"), court.admission.ask(subject, "m2")
        assert first is not None
        assert second is not None
        await court.host.until(lambda: court.judge.asked)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert not second.done()
        court.judge.is_open.set()
        await second
        assert court.admission.held(KEY, subject, "m1") is None
        assert len(court.judge.asked) == 1
        await court.host.until(lambda: not court.admission._asking)


async def test_only_so_many_questions_are_in_flight() -> None:
    async with a_court(questions_in_flight_max=2) as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.is_open.clear()
        futures = [court.admission.ask(court.subject(replicas=number), "m1") for number in range(3)]
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(court.judge.asked) == 2
        court.judge.is_open.set()
        await asyncio.gather(*(future for future in futures if future is not None))
        assert len(court.judge.asked) == 3


async def test_a_stop_cancels_open_questions() -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.is_open.clear()
        future = court.admission.ask(court.subject(), "m1")
        await court.host.until(lambda: court.judge.asked)
        await court.admission.stop()
        assert court.admission._asking == {}
        assert future is not None
        with pytest.raises(asyncio.CancelledError):
            await future
    assert reported == []


@pytest.mark.parametrize("is_silent", [False, True], ids=["unreachable", "silent"])
async def test_a_host_that_does_not_answer_is_asked_again_after_pauses_that_double(is_silent: bool) -> None:
    async with a_court(answer_timeout_s=0.01 if is_silent else 60.0) as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.answer = ClusterUnreachable("gone")
        if is_silent:
            court.judge.is_open.clear()
        message = "the host did not answer within 0.01 s" if is_silent else "gone"
        subject = court.subject()
        for pause_s in (1.0, 2.0):
            held = await court.answered(subject)
            assert held == Held(Verdict(Outcome.UNANSWERED, message), is_open=False, recheck_after_s=pause_s)
            await court.host.clock.advance(pause_s)


async def test_an_override_that_mutating_admission_takes_back_is_refused() -> None:
    async with a_court() as court:
        court.judge.answer = {"minReadySeconds": 1}
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        assert await court.answered(court.subject()) is None, "nothing on the host mutates"
        await court.configure(MUTATING_WEBHOOKS, a_webhook())
        held = await court.answered(court.subject())
        assert held is not None
        assert held.verdict == Verdict(
            Outcome.REFUSED, "the host's mutating admission takes the override back of spec.minReadySeconds"
        )
        court.judge.answer = {"minReadySeconds": 5, "paused": True}
        other = a_deployment("web", image="nginx:2")
        assert await court.answered(court.subject(other)) is None, "what it adds is no conflict"


async def test_the_verdict_of_mutating_admission_depends_on_the_source() -> None:
    async with a_court() as court:
        await court.configure(MUTATING_WEBHOOKS, a_webhook())
        court.judge.answer = {"minReadySeconds": 5}
        assert await court.answered(court.subject()) is None
        changed = a_deployment("web")
        changed["spec"]["minReadySeconds"] = 3
        assert court.admission.held(KEY, court.subject(changed), "m1") == OPEN


async def test_a_policy_counts_with_its_binding() -> None:
    constraints = {"resourceRules": a_webhook()["webhooks"][0]["rules"]}
    spec = {"matchConstraints": constraints, "validations": [{"expression": "true"}]}
    async with a_court() as court:
        await court.configure(ADMISSION_POLICIES, {"metadata": {"name": "few"}, "spec": spec})
        assert not court.admission.is_active
        binding = {"policyName": "few", "validationActions": ["Deny"]}
        await court.configure(ADMISSION_POLICY_BINDINGS, {"metadata": {"name": "few"}, "spec": binding})
        assert court.admission.is_active
        await court.answered(court.subject())
        assert len(court.judge.asked) == 1


async def test_a_change_of_the_configuration_voids_verdicts_and_wakes_what_is_held() -> None:
    async with a_court() as court:
        hook = await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.answer = Forbidden("no")
        subject = court.subject()
        await court.answered(subject)
        court.admission.track(KEY, {}, {"m1": REFUSED})
        court.admission.track(Key("default", "free"), {}, {})
        court.admission._on_configuration(hook, hook)
        assert court.host.enqueued == []
        changed = a_webhook(operations=["*"])
        metadata = {**changed["metadata"], "resourceVersion": hook["metadata"]["resourceVersion"]}
        await court.host.client.update(VALIDATING_WEBHOOKS, {**hook, **changed, "metadata": metadata})
        await court.host.until(lambda: court.host.enqueued)
        assert court.host.enqueued == [KEY]
        assert court.admission.held(KEY, subject, "m1") == Held(REFUSED, is_open=True), "as before, until the answer"
        assert court.admission.held(KEY, subject, "m2") == OPEN
        await court.host.client.delete(VALIDATING_WEBHOOKS, "guard")
        await court.host.until(lambda: not court.admission.is_active)
        assert court.host.enqueued == [KEY, KEY]
        court.host.kept.forget_object(KEY, is_deleting=True)
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        assert court.host.enqueued == [KEY, KEY]


async def test_an_answer_under_an_earlier_configuration_does_not_count() -> None:
    async with a_court() as court:
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        court.judge.is_open.clear()
        subject = court.subject()
        future = court.admission.ask(subject, "m1")
        await court.host.until(lambda: court.judge.asked)
        await court.configure(MUTATING_WEBHOOKS, a_webhook(resources=["daemonsets"]))
        court.judge.is_open.set()
        assert future is not None
        await future
        assert court.admission.held(KEY, subject, "m1") == OPEN


async def test_limits_of_the_namespace_concern_what_an_override_can_enlarge() -> None:
    async with a_court() as court:
        await court.configure(RESOURCE_QUOTAS, A_QUOTA)
        elsewhere = {**SERVICE, "metadata": {**SERVICE["metadata"], "namespace": "other"}}
        assert court.admission.is_active
        assert court.admission.held(KEY, court.subject(), "m1") is None
        assert court.admission.held(KEY, court.subject(SERVICE), "m1") == OPEN
        other = court.subject(elsewhere)
        other.federated["metadata"]["namespace"] = "other"
        assert court.admission.held(KEY, other, "m1") is None
        assert await court.answered(court.subject(SERVICE)) is None
        await court.configure(RESOURCE_QUOTAS, {**A_QUOTA, "metadata": {"name": "more", "namespace": "default"}})
        assert court.admission.held(KEY, court.subject(SERVICE), "m1") == OPEN, "a verdict ends with the limits"
        for name, is_limited in (("more", True), ("few", False)):
            before = court.admission._verdicts.configuration
            await court.host.client.delete(RESOURCE_QUOTAS, name, "default")
            await court.host.until(lambda before=before: court.admission._verdicts.configuration > before)
            assert court.admission.is_active is is_limited
            assert (court.admission.held(KEY, court.subject(SERVICE), "m1") == OPEN) is is_limited


async def test_the_use_of_a_quota_changes_nothing() -> None:
    async with a_court() as court:
        quota = await court.configure(RESOURCE_QUOTAS, A_QUOTA)
        before = court.admission._verdicts.configuration
        court.admission._on_limit(quota, {**quota, "status": {"used": {"services": "1"}}})
        assert court.admission._verdicts.configuration == before
        court.admission._on_limit(quota, {**quota, "spec": {"hard": {"services": "2"}}})
        assert court.admission._verdicts.configuration == before + 1


async def test_an_api_server_over_http_is_not_asked_about_limits() -> None:
    async with a_court(counts_limits=False) as court:
        await court.host.client.create(RESOURCE_QUOTAS, {**A_QUOTA, "apiVersion": "v1", "kind": "ResourceQuota"})
        await court.configure(VALIDATING_WEBHOOKS, a_webhook())
        assert court.admission.held(KEY, court.subject(SERVICE), "m1") is None


async def test_a_cluster_that_cannot_be_observed_keeps_its_verdict() -> None:
    async with a_court() as court:
        track = court.admission.track
        assert track(KEY, {}, {"m1": REFUSED, "m2": REFUSED}) == {"m1": REFUSED, "m2": REFUSED}
        statuses = {"m1": ClusterStatus.CLUSTER_NOT_READY, "m2": ClusterStatus.OK}
        assert track(KEY, statuses, {}) == {"m1": REFUSED}
        newer = Verdict(Outcome.REFUSED, "newer")
        assert track(KEY, statuses, {"m1": newer}) == {"m1": newer}
        assert track(KEY, {"m1": ClusterStatus.OK}, {}) == {}
        assert track(KEY, statuses, {}) == {}, "nothing is remembered"
        assert court.admission._held == {}


async def test_it_is_ready_when_the_configuration_is_known_and_lets_reconciles_wait_a_second() -> None:
    async with a_host() as host:
        stopped = Informers(host.client, clock=host.clock)
        admission = HostAdmission(replace(host.wired, informers=stopped), host.kept, host.enqueued.append)
        assert admission.grace_s == 1.0
        waiting = asyncio.create_task(admission.wait_synced())
        for _ in range(50):
            await asyncio.sleep(0)
        assert not waiting.done()
        running = asyncio.create_task(stopped.run())
        await waiting
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
