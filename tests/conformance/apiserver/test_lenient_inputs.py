"""Inputs of public reports and manifests that the API server accepts, completes or refuses against expectation."""

from typing import Any

import pytest
from tests.conformance.apiserver.objects import SELECTOR, a_spec
from tests.support.rest import APPLY, Api, Object, refused

BROKEN = "YWJj\nZGVm\r\n"
"""Base64 of "abcdef" with line breaks, as `openssl base64` and blocks of YAML have them."""


def an_autoscaler(**rules: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "behavior": {"scaleDown": rules}}
    return {"metadata": {"name": "h"}, "spec": spec}


def a_policy_of(condition: Object) -> Object:
    return {"rules": [{"action": "Ignore", "onPodConditions": [condition]}]}


def a_claim(name: str, **spec: Any) -> Object:
    amount = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": amount, **spec}}


@pytest.mark.parametrize(
    ("text", "stored"),
    [(BROKEN, "YWJjZGVm"), ("YWI=\n", "YWI="), ("YR==", "YQ=="), ("YQ==", "YQ=="), ("YWJj", "YWJj"), ("", "")],
)
@pytest.mark.parametrize(("plural", "part"), [("secrets", "data"), ("configmaps", "binaryData")])
def test_base64_is_stored_as_go_writes_it(api: Api, plural: str, part: str, text: str, stored: str) -> None:
    made = api.create(plural, {"metadata": {"name": "b"}, part: {"a": text}})
    assert made[part] == {"a": stored}
    if text:
        changed = api.patch(plural, "b", {part: {"z": text}})
        assert changed[part] == {"a": stored, "z": stored}


def test_base64_with_line_breaks_is_applied_once(api: Api) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": BROKEN}}
    first, again = (api.patch("secrets", "s", secret, type_=APPLY, fieldManager="m") for _ in range(2))
    assert first["data"] == {"a": "YWJjZGVm"}
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_certificates_of_webhooks_lose_their_line_breaks(api: Api) -> None:
    client = {"url": "https://a.example.com", "caBundle": BROKEN}
    hook = {"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": client}
    made = api.create(
        "validatingwebhookconfigurations", {"metadata": {"name": "b64"}, "webhooks": [hook]}, dryRun="All"
    )
    assert made["webhooks"][0]["clientConfig"]["caBundle"] == "YWJjZGVm"


@pytest.mark.parametrize("text", ["YWJ", "YW-_", "====", "=YWJj", "YWJj ZGVm"])
def test_what_is_no_base64_is_refused(api: Api, text: str) -> None:
    with refused(400, "BadRequest"):
        api.create("secrets", {"metadata": {"name": "b"}, "data": {"a": text}})


@pytest.mark.parametrize("name", ["A", "a_b", "a..b", "-a"])
def test_names_of_budgets_and_events_only_have_to_fit_into_a_path(api: Api, name: str) -> None:
    budget = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": SELECTOR}}
    assert api.create("poddisruptionbudgets", budget, dryRun="All")["metadata"]["name"] == name
    event = {"metadata": {"name": name}, "involvedObject": {"namespace": api.namespace}}
    assert api.create("events", event, dryRun="All")["metadata"]["name"] == name


@pytest.mark.parametrize("name", ["a/b", "%", ".", ".."])
def test_names_of_budgets_that_fit_into_no_path_are_refused(api: Api, name: str) -> None:
    with refused(422, "Invalid", "metadata.name"):
        api.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": {}}, dryRun="All")


def test_a_condition_of_a_failure_policy_is_true_by_default(api: Api) -> None:
    policy = a_policy_of({"type": "DisruptionTarget"})
    job = {"metadata": {"name": "j"}, "spec": {**a_spec("jobs"), "podFailurePolicy": policy}}
    made = api.create("jobs", job, dryRun="All")
    assert made["spec"]["podFailurePolicy"] == a_policy_of({"type": "DisruptionTarget", "status": "True"})
    spec = {"schedule": "@daily", "jobTemplate": {"spec": job["spec"]}}
    cron = api.create("cronjobs", {"metadata": {"name": "c"}, "spec": spec}, dryRun="All")
    assert cron["spec"]["jobTemplate"]["spec"]["podFailurePolicy"] == made["spec"]["podFailurePolicy"]


def test_a_claim_without_a_class_may_get_one(api: Api) -> None:
    api.create("persistentvolumeclaims", a_claim("free"))
    api.create("persistentvolumeclaims", a_claim("fixed", storageClassName=""))
    change = {"spec": {"storageClassName": "fast"}}
    assert api.patch("persistentvolumeclaims", "free", change)["spec"]["storageClassName"] == "fast"
    for name, later in (("free", {"spec": {"storageClassName": "slow"}}), ("fixed", change)):
        with refused(422, "Invalid", "spec is immutable after creation"):
            api.patch("persistentvolumeclaims", name, later)
    with refused(422, "Invalid") as caught:
        api.patch("persistentvolumeclaims", "free", {"spec": {"volumeMode": "Block"}})
    assert sorted(caught.value.fields) == ["spec", "volumeMode"]


def test_a_stateful_set_that_updates_on_deletion_has_no_rolling_update(api: Api) -> None:
    strategy = {"type": "OnDelete", "rollingUpdate": {"partition": 0}}
    with refused(422, "Invalid", "only allowed for updateStrategy 'RollingUpdate'"):
        api.create(
            "statefulsets", {"metadata": {"name": "s"}, "spec": {**a_spec("statefulsets"), "updateStrategy": strategy}}
        )


def test_an_autoscaler_with_an_empty_list_of_policies_is_refused(api: Api) -> None:
    with refused(422, "Invalid", "must specify at least one Policy"):
        api.create("autoscaling/v2/horizontalpodautoscalers", an_autoscaler(policies=[]), dryRun="All")
    made = api.create("autoscaling/v2/horizontalpodautoscalers", an_autoscaler(selectPolicy="Min"), dryRun="All")
    assert len(made["spec"]["behavior"]["scaleDown"]["policies"]) == 1


@pytest.mark.parametrize("field", ["kind", "apiVersion"])
def test_the_kind_of_delete_options_is_text(api: Api, field: str) -> None:
    answer = api.http.request("DELETE", f"/api/v1/namespaces/{api.namespace}/configmaps", json={field: 1})
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("schedule", ["0 0 * * 7", "0 0 L * *", "JAN * * * *", "0 0 * * mon#1"])
def test_schedules_that_controllers_cannot_parse_are_refused(api: Api, schedule: str) -> None:
    spec = {"schedule": schedule, "jobTemplate": {"spec": a_spec("jobs")}}
    with refused(422, "Invalid", "spec.schedule"):
        api.create("cronjobs", {"metadata": {"name": "c"}, "spec": spec}, dryRun="All")


@pytest.mark.parametrize(("field", "word"), [("int", "int"), ("in", "__in__"), ("int", "__int__")])
def test_only_reserved_words_are_escaped_in_rules(api: Api, field: str, word: str) -> None:
    rule = {"rule": f"self.{word} == 'a'"}
    spec = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    schema = {"type": "object", "properties": {"spec": {**spec, "x-kubernetes-validations": [rule]}}}
    definition = {
        "metadata": {"name": "words.escapes.example.com"},
        "spec": {
            "group": "escapes.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Word", "plural": "words"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    if word == "__int__":
        with refused(422, "Invalid", "undefined field '__int__'"):
            api.create("customresourcedefinitions", definition, dryRun="All")
    else:
        assert api.create("customresourcedefinitions", definition, dryRun="All")


def test_a_null_at_the_top_of_an_update_is_an_absent_field(api: Api) -> None:
    before = api.create("configmaps", {"metadata": {"name": "n"}, "data": {"a": "b"}})
    after = api.update("configmaps", {**before, "binaryData": None, "immutable": None})
    assert after == before


def test_an_update_that_changes_nothing_warns_as_well(api: Api) -> None:
    spec = {"selector": {"a": "b"}, "ports": [{"port": 80}], "trafficDistribution": "PreferClose"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": spec}
    url = api.url("services", "w")
    answers = [api.send("PATCH", url, service, type_=APPLY, fieldManager="m") for _ in range(2)]
    first, again = (
        [text for text in answer.headers.get_list("warning") if "PreferClose" in text] for answer in answers
    )
    assert first == again
    assert len(first) == 1
    assert len({answer.json()["metadata"]["resourceVersion"] for answer in answers}) == 1


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"action": "Never", "exitCodes": {"operator": "In", "values": [42]}}, "action"),
        ({"action": "Restart"}, "exitCodes"),
    ],
)
def test_rules_of_restarts_are_validated(api: Api, rule: Object, field: str) -> None:
    container = {"name": "c", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    pod = {"metadata": {"name": "r"}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    with refused(422, "Invalid") as caught:
        api.create("pods", pod, dryRun="All")
    assert caught.value.fields == [f"spec.containers[0].restartPolicyRules[0].{field}"]
