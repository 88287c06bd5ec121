"""Properties of the host's judgement of rendered objects: what is judged, whom it concerns, what is taken back."""

import copy
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.manifests import a_deployment

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.apimachinery.errors import (
    AlreadyExists,
    ApiError,
    ClusterUnreachable,
    Forbidden,
    InternalError,
    Invalid,
    RequestTimeout,
    ServiceUnavailable,
    TooManyRequests,
)
from federation.apimachinery.resources import DEPLOYMENTS, PODS, Resource
from federation.planning.authors import AUTHORS_MAX
from federation.planning.overrides.policies import PolicyReference
from federation.planning.rendering.memberobject import Renderer
from federation.planning.rendering.names import REASON_ADMISSION_REFUSED
from federation.planning.rendering.takenback import taken_back
from federation.planning.rendering.verdicts import (
    ADMITTED,
    Outcome,
    Verdict,
    combine,
    compile_concerns,
    limit_verdict,
    plan_report,
    requesters_of,
    to_verdict,
)

(DEPLOYMENT_TYPE,) = (
    from_config(config) for config in default_type_configs() if config["metadata"]["name"] == "deployments.apps"
)
_CLUSTERS = st.lists(st.sampled_from([f"m{number}" for number in range(30)]), unique=True, max_size=30)
_SCALARS = st.one_of(st.integers(1, 4), st.booleans(), st.sampled_from("ab"))
_NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc"), "image": st.sampled_from("xy")}),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
_KEYS = st.sampled_from(["spec", "containers", "hostPID", "labels", "x"])
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_SCALARS, _NAMED, st.lists(_SCALARS, min_size=1, max_size=3)),
    lambda inner: st.dictionaries(_KEYS, inner, min_size=1, max_size=3),
    max_leaves=10,
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES, max_size=4)


def a_federated(*entries: dict[str, Any], **annotations: str) -> dict[str, Any]:
    metadata = {"name": "web-deployments.apps", "namespace": "default", "annotations": annotations}
    return {"metadata": metadata, "spec": {"template": a_deployment("web"), "overrides": list(entries)}}


def an_entry(controller: str, clusters: list[str], path: str, values: list[Any]) -> dict[str, Any]:
    patches = [
        {"cluster": cluster, "patches": [{"op": "replace", "path": path, "value": value}]}
        for cluster, value in zip(clusters, values, strict=True)
    ]
    return {"controller": controller, "clusters": patches}


@given(_CLUSTERS, _CLUSTERS)
def test_exactly_the_clusters_that_users_override_are_judged_and_equal_overrides_once(
    scheduled: list[str], overridden: list[str]
) -> None:
    federated = a_federated(
        an_entry(names.GLOBAL_SCHEDULER, scheduled, "/spec/replicas", list(range(len(scheduled)))),
        an_entry(names.OVERRIDE_CONTROLLER, overridden, "/spec/paused", [True] * len(overridden)),
    )
    renderer = Renderer(federated, DEPLOYMENT_TYPE)
    subjects = {cluster: renderer.subject(cluster) for cluster in {*scheduled, *overridden}}
    assert {cluster for cluster, subject in subjects.items() if subject is not None} == set(overridden)
    assert len({subject.hash for subject in subjects.values() if subject is not None}) == min(len(overridden), 1)
    for subject in filter(None, subjects.values()):
        assert subject.object["spec"]["paused"] is True
        assert subject.object["spec"]["replicas"] == 3
        assert names.MANAGED_LABEL not in subject.object["metadata"]["labels"]


@given(_CLUSTERS)
def test_an_object_that_was_written_by_hand_is_judged_everywhere_with_all_its_patches(clusters: list[str]) -> None:
    counts = [number % 2 for number in range(len(clusters))]
    entry = an_entry(names.GLOBAL_SCHEDULER, clusters, "/spec/replicas", counts)
    renderer = Renderer(a_federated(entry, **{names.HAND_WRITTEN: "true"}), DEPLOYMENT_TYPE)
    for cluster, count in zip(clusters, counts, strict=True):
        subject = renderer.subject(cluster)
        assert subject is not None
        assert subject.object["spec"]["replicas"] == count
    assert renderer.subject("elsewhere") is not None
    assert renderer.source_subject().object == {}


def test_a_patch_that_depends_on_the_schedulers_is_judged_with_it() -> None:
    test = {"op": "test", "path": "/spec/replicas", "value": 7}
    harm = {"op": "replace", "path": "/spec/paused", "value": True}
    federated = a_federated(
        an_entry(names.GLOBAL_SCHEDULER, ["m1"], "/spec/replicas", [7]),
        {"controller": names.OVERRIDE_CONTROLLER, "clusters": [{"cluster": "m1", "patches": [test, harm]}]},
    )
    subject = Renderer(federated, DEPLOYMENT_TYPE).subject("m1")
    assert subject is not None
    assert subject.object["spec"]["replicas"] == 7
    assert subject.object["spec"]["paused"] is True


@given(st.lists(st.sampled_from(["default/a", "default/b", "site", "other"]), unique=True), st.booleans())
def test_only_cluster_wide_policies_alone_have_a_user_of_their_own(policies: list[str], is_by_hand: bool) -> None:
    annotations = {names.OVERRIDE_POLICIES: ",".join(policies)} | ({names.HAND_WRITTEN: "true"} if is_by_hand else {})
    is_cluster_wide = bool(policies) and not any("/" in policy for policy in policies) and not is_by_hand
    expected = names.CLUSTER_OVERRIDE_POLICY_USER if is_cluster_wide else names.OVERRIDE_POLICY_USER
    assert requesters_of(a_federated(**annotations)) == [{"username": expected, "groups": ["system:authenticated"]}]


def test_the_authors_of_overrides_and_of_the_object_must_be_admitted() -> None:
    ann, bob = {"username": "ann", "groups": ["tenants"]}, {"username": "bob", "groups": []}
    annotations = {
        names.OVERRIDE_AUTHORS: orjson.dumps([ann]).decode(),
        names.AUTHORS: orjson.dumps([{"user": bob, "wrote": []}, {"user": ann, "wrote": []}]).decode(),
    }
    assert requesters_of(a_federated(**annotations))[1:] == [ann, bob]
    del annotations[names.AUTHORS]
    assert requesters_of(a_federated(**annotations))[1:] == [ann]


def test_the_host_is_asked_about_a_bounded_number_of_users() -> None:
    users = [{"username": str(number), "groups": []} for number in range(AUTHORS_MAX + 2)]
    assert limit_verdict(users[:-1]) is None
    verdict = limit_verdict(users)
    assert verdict is not None
    assert (verdict.outcome, "33 users wrote" in verdict.message) == (Outcome.REFUSED, True)


REFUSED, UNANSWERED = Verdict(Outcome.REFUSED, "no"), Verdict(Outcome.UNANSWERED, "who?")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([ADMITTED, ADMITTED], ADMITTED),
        ([ADMITTED, REFUSED], REFUSED),
        ([None, REFUSED], REFUSED),
        ([UNANSWERED, REFUSED], REFUSED),
        ([ADMITTED, None], None),
        ([UNANSWERED, None], None),
        ([ADMITTED, UNANSWERED], UNANSWERED),
    ],
)
def test_all_users_must_be_admitted(verdicts: list[Verdict | None], expected: Verdict | None) -> None:
    assert combine(verdicts) == expected


TAKEN = 'deployments.apps "web" already exists'
REFUSALS = [
    Invalid("no"),
    Forbidden("no"),
    ApiError("no", code=403),
    AlreadyExists(f'admission webhook "x" denied the request: {TAKEN}'),
    AlreadyExists('deployments.apps "other" already exists'),
]
SILENCES = [
    InternalError("no"),
    ServiceUnavailable("no"),
    TooManyRequests("no"),
    ClusterUnreachable("no"),
    RequestTimeout("no"),
]


@pytest.mark.parametrize("error", REFUSALS, ids=str)
def test_an_answer_of_the_host_is_a_refusal(error: ApiError) -> None:
    assert to_verdict(error, DEPLOYMENTS, "web") == Verdict(Outcome.REFUSED, str(error))


@pytest.mark.parametrize("error", SILENCES, ids=lambda error: type(error).__name__)
def test_no_answer_is_neither_an_admission_nor_a_refusal(error: ApiError) -> None:
    assert to_verdict(error, DEPLOYMENTS, "web").outcome is Outcome.UNANSWERED


def test_a_taken_name_is_an_admission() -> None:
    assert to_verdict(AlreadyExists(TAKEN), DEPLOYMENTS, "web") is ADMITTED
    assert to_verdict(None, DEPLOYMENTS, "web") is ADMITTED


@pytest.mark.parametrize(
    ("groups", "resources", "operations", "expected"),
    [
        (["apps"], ["deployments"], ["CREATE"], True),
        (["apps"], ["deployments"], ["*"], True),
        (["*"], ["*"], ["CREATE", "UPDATE"], True),
        (["apps"], ["*/*"], ["*"], True),
        (["apps"], ["deployments"], ["UPDATE", "DELETE"], False),
        (["apps"], ["deployments/scale"], ["*"], False),
        (["apps"], ["deployments/*"], ["*"], False),
        ([""], ["deployments"], ["*"], False),
        (["apps"], ["statefulsets"], ["*"], False),
    ],
)
def test_rules_concern_the_creation_of_their_resources(
    groups: list[str], resources: list[str], operations: list[str], expected: bool
) -> None:
    rule = {"apiGroups": groups, "apiVersions": ["v1"], "resources": resources, "operations": operations}
    webhooks = compile_concerns([{"webhooks": [{"rules": [rule]}]}], [], [])
    policy = {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}}}
    bound = compile_concerns([], [policy], [{"spec": {"policyName": "p"}}])
    assert webhooks.include(DEPLOYMENTS) is bound.include(DEPLOYMENTS) is expected
    assert webhooks.include(Resource("apps", "v1beta1", "Deployment", "deployments")) is expected
    assert not compile_concerns([], [policy], [{"spec": {"policyName": "another"}}])


def test_a_policy_without_rules_concerns_everything() -> None:
    concerns = compile_concerns([], [{"metadata": {"name": "p"}}], [{"spec": {"policyName": "p"}}])
    assert concerns.include(PODS)
    assert not compile_concerns([], [], [])


def test_our_own_webhooks_on_an_existing_host_are_no_concern() -> None:
    held = [{"apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments"], "operations": ["CREATE"]}]
    for name, expected in ((names.HOST_WEBHOOKS, False), ("another", True)):
        configuration = {"metadata": {"name": name}, "webhooks": [{"rules": held}]}
        assert compile_concerns([configuration], [], []).include(DEPLOYMENTS) is expected


@given(st.dictionaries(st.sampled_from([f"m{number}" for number in range(99)]), st.sampled_from("abcdefgh")))
def test_a_report_is_short_and_false_exactly_when_something_is_held(held: dict[str, str]) -> None:
    verdicts = {cluster: Verdict(Outcome.REFUSED, message * 1024) for cluster, message in held.items()}
    report = plan_report(verdicts, [PolicyReference("default", "a")])
    assert (report.status == "False") is bool(held)
    assert len(report.message) < 8 * 1024
    assert report == plan_report(dict(reversed(verdicts.items())), [PolicyReference("default", "a")])


def test_a_refusal_outranks_a_silence_in_the_reason() -> None:
    held = {"a": Verdict(Outcome.UNANSWERED, "x"), "b": Verdict(Outcome.REFUSED, "y")}
    report = plan_report(held, [PolicyReference("", "site")])
    assert report.reason == REASON_ADMISSION_REFUSED
    assert report.message == 'a: x; b: y (overridden by ClusterOverridePolicy "site")'


@given(_OBJECTS, _OBJECTS)
def test_nothing_is_taken_back_when_the_host_changes_nothing(
    source: dict[str, Any], overridden: dict[str, Any]
) -> None:
    assert taken_back(source, overridden, copy.deepcopy(overridden)) == []


@given(_OBJECTS, _OBJECTS, _SCALARS)
def test_additions_of_webhooks_are_no_conflict(source: dict[str, Any], wanted: dict[str, Any], value: Any) -> None:
    def grown(part: Any) -> Any:
        if isinstance(part, dict):
            return {**{key: grown(inner) for key, inner in part.items()}, "added": value}
        if isinstance(part, list) and all(isinstance(item, dict) for item in part):
            return [{"name": "sidecar", "image": "s"}, *map(grown, part)]
        return part

    assert taken_back(source, wanted, grown(wanted)) == []


@given(_OBJECTS, _OBJECTS)
def test_an_override_that_the_host_undoes_is_found(source: dict[str, Any], wanted: dict[str, Any]) -> None:
    def canonical(part: Any) -> Any:
        """Order named items, whose order is no override, and drop the type that tells true from 1."""
        if isinstance(part, dict):
            return {key: canonical(value) for key, value in part.items()}
        if isinstance(part, list):
            return sorted(repr(canonical(item)) for item in part) if _is_named(part) else list(map(canonical, part))
        return repr(part)

    assume(canonical(source) != canonical(wanted))
    assert taken_back(source, wanted, copy.deepcopy(source)) != []


def _is_named(part: list[Any]) -> bool:
    return all(isinstance(item, dict) and "name" in item for item in part)


def test_paths_name_the_fields() -> None:
    source = {"spec": {"hostPID": False, "containers": [{"name": "web", "image": "a"}], "runAsNonRoot": True}}
    wanted = {"spec": {"hostPID": True, "containers": [{"name": "web", "image": "b"}]}}
    assert taken_back(source, wanted, source) == ["spec.containers.web.image", "spec.hostPID", "spec.runAsNonRoot"]
    quantity = {"requests": {"cpu": "1000m"}}
    assert taken_back({}, quantity, {"requests": {"cpu": "1"}}) == []
    assert taken_back(quantity, {"requests": {}}, {"requests": {"cpu": "1"}}) == ["requests.cpu"]
    tolerations = {"tolerations": [{"key": "a"}]}
    assert taken_back({}, tolerations, {"tolerations": [{"key": "a"}, {"key": "b"}]}) == []
    assert taken_back({"tolerations": [{"key": "b"}]}, tolerations, {"tolerations": [{"key": "a"}, {"key": "b"}]})
