"""Rescheduling triggers, and the matching of policies."""

import json
from typing import Any

import pytest

from federation.api import names
from federation.scheduling.clustertriggers import KINDS
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.podrequest import request_of
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy, PolicyRef, compile_policy
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.triggers import ObjectTriggers, TriggerComparison, Triggers, TriggerSource, compare_triggers
from federation.scheduling.triggerwords import describe_deferral, describe_triggers


def a_policy(name: str = "p", namespace: str = "default", **spec: Any) -> Policy:
    return compile_policy({"metadata": {"name": name, "namespace": namespace}, "spec": spec})


EAST = a_cluster("east").built()


def triggers(
    policy: Policy | None = None,
    clusters: Any = (EAST,),
    source: TriggerSource | None = None,
    generation: int = 1,
    **changes: Any,
) -> Triggers:
    fields: dict[str, Any] = {"annotations": {}, "replicas": 2, "request": {"cpu": 1}, "policy": policy} | changes
    return (source or TriggerSource()).triggers(ObjectTriggers(**fields), Snapshot(generation, tuple(clusters)))


def judged(
    old: Triggers | str | None, now: Triggers, policy: Policy | None, *, is_plugin_back: bool = False
) -> TriggerComparison:
    text = old.text if isinstance(old, Triggers) else old
    return compare_triggers(text, now, policy, is_plugin_back=is_plugin_back)


WHEN = {"rescheduleWhen": {"policyContentChanged": True}}
AUTO = {"autoMigration": {}, "reschedulePolicy": WHEN}


def test_nothing_changed_is_nothing_to_do() -> None:
    policy = a_policy()
    assert judged(triggers(policy), triggers(policy), policy).is_due is False


def test_the_text_does_not_depend_on_who_made_it_or_on_order() -> None:
    clusters = [a_cluster(name).labelled(a="1", b="2").built() for name in ("east", "west")]
    again = [a_cluster(name).labelled(b="2", a="1").built() for name in ("east", "west")]
    one = triggers(a_policy(), clusters, request={"cpu": 1, "memory": 2})
    assert one == triggers(a_policy(), again, request={"memory": 2, "cpu": 1})
    assert list(json.loads(one.text)) == sorted(json.loads(one.text))


# KubeAdmiral's early versions kept lists of key and value where there are maps now.
OLD_FORM = '{"policyName": "p", "clusterLabelsHashes": [{"key": "east", "value": "1"}]}'


@pytest.mark.parametrize(
    "old", [None, "", "{nonsense", "[]", "null", "5", OLD_FORM, '{"clusters": {}, "clusterTaintsHashes": "x"}']
)
def test_an_object_without_a_readable_past_is_due(old: str | None) -> None:
    policy = a_policy()
    assert judged(old, triggers(policy), policy).is_due


def test_foreign_stored_triggers_prevent_no_decision() -> None:
    policy = a_policy(reschedulePolicy=WHEN)
    past = json.loads(triggers(policy).text) | {
        "clusters": [{}, None, 1],
        "replicaCount": "two",
        "policyContentHash": [],
    }
    assert judged(json.dumps(past), triggers(policy), policy).is_due


def test_without_a_policy_any_difference_counts() -> None:
    assert judged(triggers(), triggers(replicas=3), None).is_due
    assert judged(triggers(), triggers(clusters=(a_cluster("west").built(),)), None).is_due
    assert not judged(triggers(), triggers(), None).is_due


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"replicas": 5}, "replicaCount"),
        ({"request": {"cpu": 2}}, "resourceRequest"),
        ({"annotations": {names.MAX_CLUSTERS: "1"}}, "schedulingAnnotationsHash"),
    ],
)
def test_a_change_of_the_object_counts_whatever_the_policy_says(changes: Any, field: str) -> None:
    policy = a_policy(reschedulePolicy={"disableRescheduling": True})
    verdict = judged(triggers(policy), triggers(policy, **changes), policy)
    assert verdict.is_due
    assert verdict.changed == (field,)


def test_feedback_counts_with_auto_migration_only() -> None:
    feedback = {"annotations": {names.AUTO_MIGRATION_INFO: "{}"}}
    policy = a_policy(**AUTO)
    assert judged(triggers(policy), triggers(policy, **feedback), policy).is_due
    plain = a_policy(reschedulePolicy=WHEN)
    assert triggers(plain) == triggers(plain, **feedback)


@pytest.mark.parametrize(
    ("changed", "field", "reason"),
    [
        (a_cluster("east").labelled(x="y").built(), "clusterLabelsChanged", "clusterLabelsChanged:false"),
        (a_cluster("east").serving().built(), "clusterAPIResourcesChanged", "clusterAPIResourcesChanged:false"),
    ],
)
def test_a_cluster_change_counts_when_the_policy_follows_it(changed: Any, field: str, reason: str) -> None:
    ignoring = a_policy(reschedulePolicy=WHEN)
    verdict = judged(triggers(ignoring), triggers(ignoring, [changed]), ignoring)
    assert (verdict.is_due, verdict.deferred_reasons) == (False, reason)
    following = a_policy(reschedulePolicy={"rescheduleWhen": {field: True}})
    assert judged(triggers(following), triggers(following, [changed]), following).is_due


def test_a_cluster_has_joined_when_it_is_ready_and_never_twice_for_one_decision() -> None:
    following = a_policy(reschedulePolicy={"rescheduleWhen": {"clusterJoined": True}})
    new = a_cluster("west").serving()
    before, joining = triggers(following), triggers(following, [EAST, new.unready().built()])
    joined, lost = (
        triggers(following, [EAST, a_cluster("west").built()]),
        triggers(following, [a_cluster("east").unready().built()]),
    )
    assert not judged(before, joining, following).is_due
    assert not judged(before, joining, following).deferred_reasons
    assert judged(before, joined, following).is_due
    assert judged(joined, joining, following).is_due is False, "that it is not ready is no reason"
    assert judged(joined, joined, following).is_due is False
    assert judged(before, lost, following).is_due is False
    assert judged(lost, before, following).is_due, "no decision could use it before"


def test_a_cluster_that_joins_counts_whoever_else_is_not_ready() -> None:
    following = a_policy(reschedulePolicy={"rescheduleWhen": {"clusterJoined": True}})
    now = triggers(following, [a_cluster("east").unready().built(), a_cluster("west").built()])
    assert judged(triggers(following), now, following).is_due


def test_as_in_kubeadmiral_a_cluster_has_joined_before_it_is_ready() -> None:
    following = a_policy(reschedulePolicy={"rescheduleWhen": {"clusterJoined": True}})
    before, joining = (
        triggers(following, clusters, TriggerSource(as_kubeadmiral=True))
        for clusters in ([EAST], [EAST, a_cluster("west").unready().built()])
    )
    assert judged(before, joining, following).is_due


def test_a_plugin_that_is_back_counts_as_a_changed_profile() -> None:
    policy = a_policy(reschedulePolicy=WHEN)
    assert judged(triggers(policy), triggers(policy), policy, is_plugin_back=True) == TriggerComparison(
        True, "", ("ignoredPlugins",)
    )
    for rules, reason in (
        ({"rescheduleWhen": {"policyContentChanged": False}}, "policyContentChanged:false"),
        ({"disableRescheduling": True}, "disableRescheduling:true"),
        ({}, "rescheduleWhen:nil"),
    ):
        staying = a_policy(reschedulePolicy=rules)
        verdict = judged(triggers(staying), triggers(staying), staying, is_plugin_back=True)
        assert (verdict.is_due, verdict.deferred_reasons) == (False, reason)


def test_a_request_beyond_64_bits_can_be_noted() -> None:
    containers = [{"resources": {"requests": {"cpu": "10E", "memory": "100E"}}}]
    request = request_of({"kind": "Pod", "spec": {"containers": containers}})
    assert json.loads(triggers(request=request).text)["resourceRequest"] == dict.fromkeys(("cpu", "memory"), 2**63 - 1)


@pytest.mark.parametrize("rules", [{"rescheduleWhen": {}}, {"disableRescheduling": True}, {}])
def test_that_a_cluster_is_not_ready_is_no_change_that_is_left_aside(rules: Any) -> None:
    policy = a_policy(reschedulePolicy=rules)
    assert judged(
        triggers(policy), triggers(policy, [a_cluster("east").unready().built()]), policy
    ) == TriggerComparison(is_due=False)


@pytest.mark.parametrize("rules", [{"rescheduleWhen": {}}, {"disableRescheduling": True}, {}])
def test_the_return_of_a_cluster_is_no_change_that_is_left_aside(rules: Any) -> None:
    """Nothing looks at an object elsewhere then: it would be recorded after a restart, for all objects at once."""
    policy = a_policy(reschedulePolicy=rules)
    away = triggers(policy, [EAST, a_cluster("west").unready().built()])
    back = triggers(policy, [EAST, a_cluster("west").built()])
    assert judged(away, back, policy) == TriggerComparison(is_due=False)
    another = triggers(policy, [EAST, a_cluster("west").built(), a_cluster("north").built()])
    assert judged(away, another, policy).deferred_reasons


def of_kubeadmiral(**changes: Any) -> str:
    """Return triggers in KubeAdmiral's form: hashes of Go structs, one per cluster."""
    hashes = {field: {"east": "1"} for field in ("clusterLabelsHashes", "clusterTaintsHashes")}
    request = {"MilliCPU": 1, "Memory": 0, "EphemeralStorage": 0, "ScalarResources": None}
    written = {
        "schedulingAnnotationsHash": "2",
        "replicaCount": 2,
        "resourceRequest": request,
        "policyName": "p",
        "policyContentHash": "3",
        "clusters": ["east"],
        **hashes,
        "clusterAPIResourceTypesHashes": {"east": "4"},
    }
    return json.dumps(written | changes)


ALL = {"rescheduleWhen": dict.fromkeys(("clusterJoined", "clusterLabelsChanged", "clusterAPIResourcesChanged"), True)}


def test_a_decision_of_kubeadmiral_is_adopted_and_later_changes_count() -> None:
    policy = a_policy(reschedulePolicy=ALL)
    verdict = judged(of_kubeadmiral(), triggers(policy), policy)
    assert not verdict.is_due
    assert verdict.adopted == triggers(policy).text
    relabelled = triggers(policy, [a_cluster("east").labelled(a="b").built()])
    assert judged(verdict.adopted, relabelled, policy).is_due


@pytest.mark.parametrize(
    ("written", "changed"),
    [
        ({"replicaCount": 3}, ("replicaCount",)),
        ({"policyName": "q"}, ("policyName",)),
        ({"clusters": []}, ("clusters",)),
        ({"clusters": ["east", "gone"]}, KINDS),
    ],
)
def test_changes_since_kubeadmirals_decision_count(written: Any, changed: Any) -> None:
    policy = a_policy(reschedulePolicy=ALL)
    verdict = judged(of_kubeadmiral(**written), triggers(policy), policy)
    assert (verdict.is_due, verdict.changed) == (True, changed)


def test_changes_that_the_policy_ignores_are_ignored_after_adoption() -> None:
    policy = a_policy(reschedulePolicy=WHEN)
    verdict = judged(of_kubeadmiral(clusters=[]), triggers(policy), policy)
    assert (verdict.is_due, verdict.deferred_reasons) == (False, "clusterJoined:false")
    assert judged(verdict.adopted, triggers(policy), policy).deferred_reasons == "clusterJoined:false"


def test_feedback_since_kubeadmirals_decision_counts() -> None:
    policy = a_policy(**AUTO)
    told = triggers(policy, annotations={names.AUTO_MIGRATION_INFO: "{}"})
    assert judged(of_kubeadmiral(), told, policy).changed == ("autoMigrationInfo",)
    assert not judged(of_kubeadmiral(autoMigrationInfo="{}"), told, policy).is_due


def test_a_profile_change_counts_as_policy_content() -> None:
    policy = a_policy(reschedulePolicy=WHEN)
    assert judged(triggers(policy), triggers(policy, profile_hash="1"), policy).is_due


def test_hashes_are_cached_while_clusters_are_unchanged() -> None:
    source = TriggerSource()
    east, west = a_cluster("east").tainted("a").built(), a_cluster("west").built()
    first = triggers(clusters=[east, west], source=source)
    fuller = a_cluster("east").tainted("a").offering(cpu="1").built()
    assert triggers(clusters=[fuller, west], source=source, generation=2) == first
    assert triggers(clusters=[fuller], source=source, generation=3) != first
    assert list(source._clusters._hashes) == ["east"]


SELECTOR = {"apiVersion": "apps/v1", "kind": "Deployment"}


def a_fed_object(namespace: str = "default", fed_labels: Any = None, **labels: str) -> dict[str, Any]:
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": labels}}
    metadata = {"name": "web-d", "namespace": namespace, "labels": fed_labels or {}}
    return {"metadata": metadata, "spec": {"template": template}}


def index_of(*policies: Policy) -> PolicyIndex:
    index = PolicyIndex()
    for policy in policies:
        index.put(policy)
    return index


def test_a_policy_of_the_namespace_selects_before_a_cluster_wide_one_and_then_by_name() -> None:
    wide = a_policy("a", "", resourceSelectors=[SELECTOR])
    first, second = (a_policy(name, "default", resourceSelectors=[SELECTOR]) for name in ("b", "c"))
    assert index_of(wide, second, first).match(a_fed_object()) == first.ref
    assert index_of(wide, second, first).match(a_fed_object("elsewhere")) == wide.ref
    assert index_of(wide).match(a_fed_object("")) == wide.ref


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (SELECTOR, True),
        ({**SELECTOR, "name": "web"}, True),
        ({**SELECTOR, "name": "other"}, False),
        ({**SELECTOR, "kind": "StatefulSet"}, False),
        ({**SELECTOR, "apiVersion": "apps/v1beta1"}, True),
        ({**SELECTOR, "apiVersion": "apps.example.com/v1"}, False),
        ({**SELECTOR, "labelSelector": {"matchLabels": {"tier": "front"}}}, True),
        ({**SELECTOR, "labelSelector": {"matchLabels": {"tier": "back"}}}, False),
    ],
)
def test_selectors(selector: Any, matches: bool) -> None:
    found = index_of(a_policy(resourceSelectors=[selector])).match(a_fed_object(tier="front"))
    assert (found is not None) is matches


def test_a_label_wins_over_selectors_even_when_its_policy_does_not_exist() -> None:
    index = index_of(a_policy(resourceSelectors=[SELECTOR]))
    labelled = a_fed_object(fed_labels={names.CLUSTER_PROPAGATION_POLICY_LABEL: "gone"})
    assert index.match(labelled) == PolicyRef("", "gone")
    assert index.get(PolicyRef("", "gone")) is None


def test_a_changed_or_removed_policy_selects_no_more() -> None:
    index = index_of(a_policy(resourceSelectors=[SELECTOR]))
    index.put(a_policy())
    assert index.match(a_fed_object()) is None
    index.put(a_policy(resourceSelectors=[SELECTOR]))
    index.remove(PolicyRef("default", "p"))
    index.remove(PolicyRef("default", "p"))
    assert index.match(a_fed_object()) is None


def test_fields_that_plugins_declare_count_unless_just_declared() -> None:
    policy = a_policy(reschedulePolicy={"disableRescheduling": True})
    first, second, none = (triggers(policy, plugin_fields_hash=told) for told in ("1", "2", ""))
    assert judged(first, second, policy).is_due
    assert not judged(none, second, policy).is_due
    assert not judged(second, none, policy).is_due
    assert list(json.loads(first.text)) == sorted(json.loads(first.text))


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (
            "clusterLabelsChanged:false; clusterJoined:false",
            (
                "labels of clusters changed and a cluster joined; the policy does not follow that"
                " (rescheduleWhen: clusterLabelsChanged, clusterJoined)"
            ),
        ),
        ("disableRescheduling:true", "the policy never moves what is placed (disableRescheduling: true)"),
        ("4/4 clusters are available; nothing more", "4/4 clusters are available; nothing more"),
        ("", ""),
    ],
)
def test_deferred_reasons_are_described(reasons: str, words: str) -> None:
    assert describe_deferral(reasons) == words


def test_every_trigger_has_words() -> None:
    policy = a_policy(**AUTO)
    now = triggers(policy, source=TriggerSource(as_kubeadmiral=True), plugin_fields_hash="1", profile_hash="1")
    for name in json.loads(now.text):
        assert describe_triggers([name]) != name
    assert describe_triggers(["policyContentHash", "policyName", "ofALaterVersion"]) == "policy, ofALaterVersion"


def test_auto_migration_reschedules_for_its_own_news_only() -> None:
    policy = a_policy(autoMigration={}, reschedulePolicy={"disableRescheduling": True})
    assert not judged(triggers(policy), triggers(policy, (EAST, a_cluster("west").built())), policy).is_due
    told = {names.AUTO_MIGRATION_INFO: '{"estimatedCapacity": {"east": 1}}'}
    assert judged(triggers(policy), triggers(policy, annotations=told), policy).is_due


@pytest.mark.parametrize(
    ("spec", "follows", "is_sticky"),
    [
        ({}, False, False),
        ({"reschedulePolicy": {}}, False, False),
        ({"reschedulePolicy": {"rescheduleWhen": {"policyContentChanged": False}}}, False, False),
        ({"reschedulePolicy": WHEN}, True, False),
        ({"reschedulePolicy": {**WHEN, "disableRescheduling": True}}, False, True),
        ({"reschedulePolicy": WHEN, "stickyCluster": True}, True, True),
    ],
)
def test_a_policy_says_whether_its_content_and_its_clusters_matter_later(
    spec: dict[str, Any], follows: bool, is_sticky: bool
) -> None:
    policy = a_policy(**spec)
    assert (policy.follows_content, policy.rescheduling.is_sticky) == (follows, is_sticky)
