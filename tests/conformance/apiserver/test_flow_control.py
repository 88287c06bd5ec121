"""FlowSchemas, PriorityLevelConfigurations, and the mandatory ones among them."""

import pytest
from tests.support.rest import Api, Object, eventually, refused

RULE: Object = {
    "subjects": [{"kind": "User", "user": {"name": "u"}}],
    "resourceRules": [{"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}],
}
LEVEL: Object = {"priorityLevelConfiguration": {"name": "exempt"}}


def a_schema(name: str = "x", **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": {**LEVEL, **spec}}


def a_level(name: str = "x", **limited: object) -> Object:
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


@pytest.mark.parametrize("name", ["exempt", "catch-all"])
def test_the_mandatory_objects_exist_and_keep_their_specs(api: Api, name: str) -> None:
    assert api.get("prioritylevelconfigurations", name)["metadata"]["annotations"]
    with refused(422, text=f"spec of '{name}' must equal the fixed value"):
        api.patch("flowschemas", name, {"spec": {"rules": [RULE]}})


def test_a_deleted_mandatory_object_comes_back(api: Api) -> None:
    before = api.get("flowschemas", "catch-all")
    api.delete("flowschemas", "catch-all")
    eventually(lambda: api.exists("flowschemas", "catch-all"), 90)  # the real server looks once a minute
    assert api.get("flowschemas", "catch-all")["spec"] == before["spec"]


def test_only_the_shares_of_the_exempt_level_may_change(api: Api) -> None:
    changed = {"spec": {"exempt": {"lendablePercent": 5}}}
    level = api.patch("prioritylevelconfigurations", "exempt", changed, dryRun="All")
    assert level["spec"]["exempt"]["lendablePercent"] == 5
    with refused(422, text="except the 'spec.exempt' field must equal the fixed value"):
        api.patch("prioritylevelconfigurations", "exempt", {"spec": {"type": "Limited"}})


def test_defaults_and_generation(api: Api) -> None:
    name = api.namespace
    assert api.create("flowschemas", a_schema(name, rules=[RULE]))["spec"]["matchingPrecedence"] == 1000
    changed = api.patch("flowschemas", name, {"spec": {"matchingPrecedence": 7}})
    assert changed["metadata"]["generation"] == 2
    condition = {"type": "Mine", "status": "True"}
    reported = api.patch("flowschemas", name, {"status": {"conditions": [condition]}}, "status")
    assert reported["metadata"]["generation"] == 2
    api.delete("flowschemas", name)
    queuing = a_level(limitResponse={"type": "Queue", "queuing": {}})
    level = api.create("prioritylevelconfigurations", queuing, dryRun="All")["spec"]["limited"]
    assert level["nominalConcurrencyShares"] == 30
    assert level["limitResponse"]["queuing"] == {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"matchingPrecedence": 1}, "spec.matchingPrecedence"),
        ({"matchingPrecedence": 10001}, "spec.matchingPrecedence"),
        ({"priorityLevelConfiguration": {"name": ""}}, "spec.priorityLevelConfiguration.name"),
        ({"distinguisherMethod": {"type": "x"}}, "spec.distinguisherMethod.type"),
        ({"rules": [{**RULE, "subjects": []}]}, "spec.rules[0].subjects"),
        ({"rules": [{**RULE, "subjects": [{"kind": "Group"}]}]}, "spec.rules[0].subjects[0].group"),
        (
            {"rules": [{**RULE, "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/a*"]}]}]},
            "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]",
        ),
    ],
)
def test_a_flow_schema_is_refused_with_the_field_that_is_wrong(api: Api, spec: Object, field: str) -> None:
    with refused(422, "Invalid") as caught:
        api.create("flowschemas", a_schema(**spec))
    assert caught.value.fields == [field]


@pytest.mark.parametrize(
    ("limited", "field"),
    [
        ({"limitResponse": {"type": "Reject", "queuing": {}}}, "spec.limited.limitResponse.queuing"),
        ({"limitResponse": {"type": "Queue"}}, "spec.limited.limitResponse.queuing"),
        ({"limitResponse": {"type": "Reject"}, "lendablePercent": 101}, "spec.limited.lendablePercent"),
        (
            {"limitResponse": {"type": "Queue", "queuing": {"queues": 1000, "handSize": 8}}},
            "spec.limited.limitResponse.queuing.handSize",
        ),
    ],
)
def test_a_priority_level_is_refused_with_the_field_that_is_wrong(api: Api, limited: Object, field: str) -> None:
    with refused(422, "Invalid") as caught:
        api.create("prioritylevelconfigurations", a_level(**limited))
    assert caught.value.fields == [field]


def _condition(api: Api, name: str) -> Object:
    conditions = api.get("flowschemas", name).get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "Dangling"), {})


def test_requests_are_classified_by_the_schema_of_an_administrator(api: Api) -> None:
    """[sig-api-machinery] API priority and fairness should ensure that requests can be classified."""
    name = api.namespace
    paths = [{"verbs": ["*"], "nonResourceURLs": ["/api/*"]}]
    rule = {"subjects": [{"kind": "User", "user": {"name": name}}], "nonResourceRules": paths}
    level = {"priorityLevelConfiguration": {"name": name}}
    schema = api.create("flowschemas", a_schema(name, matchingPrecedence=900, rules=[rule], **level))
    try:
        eventually(lambda: _condition(api, name).get("status") == "True")
        assert _condition(api, name)["reason"] == "NotFound"
        created = api.create("prioritylevelconfigurations", a_level(name, limitResponse={"type": "Reject"}))
        eventually(lambda: _condition(api, name).get("status") == "False")
        assert _condition(api, name)["reason"] == "Found"
        uids = {"x-kubernetes-pf-flowschema-uid": schema, "x-kubernetes-pf-prioritylevel-uid": created}

        def answer(user: str) -> dict[str, str]:
            headers = {"Impersonate-User": user, "Impersonate-Group": "system:authenticated"}
            return dict(api.send("GET", "/api/v1", headers=headers).headers)

        eventually(lambda: answer(name).items() >= {key: obj["metadata"]["uid"] for key, obj in uids.items()}.items())
        others = answer("someone")
        assert all(others[key] not in ("", obj["metadata"]["uid"]) for key, obj in uids.items())
        shown = api.send("GET", "/metrics", accept="text/plain").text
        assert f'apiserver_flowcontrol_nominal_limit_seats{{priority_level="{name}"}}' in shown
    finally:
        api.delete("flowschemas", name)
        if api.exists("prioritylevelconfigurations", name):
            api.delete("prioritylevelconfigurations", name)
