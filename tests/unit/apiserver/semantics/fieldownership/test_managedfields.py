"""Managed fields after create and update."""

import copy
from datetime import UTC, datetime, timedelta

from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.fieldownership.managedfields import track_update
from federation.apiserver.semantics.schema.builtin import builtin_schema

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
DEPLOYMENT = builtin_schema("apps", "v1", "Deployment")


def track(old, new, manager="editor", *, now=NOW, subresource="", schema=DEPLOYMENT):
    return track_update(schema, old, new, manager=manager, api_version="apps/v1", subresource=subresource, now=now)


def a_deployment(**spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def sets(obj):
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_creator_owns_all_fields_but_the_identity_and_structs_held_by_value():
    obj = a_deployment(
        replicas=1,
        strategy={"rollingUpdate": {"maxSurge": 1}},
        template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "resources": {}}]}},
    )
    obj["metadata"] |= {"labels": {"x": "y"}, "uid": "u", "resourceVersion": "1", "generation": 1}
    assert sets(track(None, obj))["editor"] == {
        "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
                "f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:resources": {}}}},
            },
        },
    }


def test_structs_of_a_custom_resource_are_owned():
    schema = from_openapi(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    )
    obj = {"kind": "X", "metadata": {"name": "x", "annotations": {"a": "b"}}, "spec": {"a": "b"}}
    assert sets(track(None, obj, schema=schema))["editor"] == {
        "f:metadata": {"f:annotations": {".": {}, "f:a": {}}},
        "f:spec": {".": {}, "f:a": {}},
    }


def test_update_takes_over_changed_fields():
    live = track(None, a_deployment(replicas=1, paused=True), "one")
    after = track(live, {**live, "spec": {"replicas": 2, "paused": True}}, "two")
    assert sets(after) == {"one": {"f:spec": {"f:paused": {}}}, "two": {"f:spec": {"f:replicas": {}}}}


def test_removed_fields_have_no_owner_and_an_empty_entry_is_removed():
    live = track(None, a_deployment(replicas=1), "one")
    live = track(live, {**live, "spec": {"replicas": 1, "paused": True}}, "two")
    after = track(live, {**live, "spec": {"replicas": 1}}, "three")
    assert sets(after) == {"one": {"f:spec": {"f:replicas": {}}}}


def test_update_without_changes_keeps_entries_and_time():
    live = track(None, a_deployment(replicas=1))
    again = track(live, copy.deepcopy(live), now=NOW + timedelta(hours=1))
    assert again == live


def test_status_subresource_has_its_own_entry():
    live = track(None, a_deployment(replicas=1))
    after = track(live, {**live, "status": {"replicas": 1}}, "kcm", subresource="status")
    entry = next(entry for entry in after["metadata"]["managedFields"] if entry["manager"] == "kcm")
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"] == {"f:status": {"f:replicas": {}}}


def test_empty_list_keeps_the_entries_and_a_list_of_an_empty_entry_resets_them():
    live = track(None, a_deployment(replicas=1))
    live["metadata"]["uid"] = "u"
    kept = track(live, {**live, "metadata": {**live["metadata"], "managedFields": []}})
    assert sets(kept) == sets(live)
    reset = track(live, {**live, "metadata": {**live["metadata"], "managedFields": [{}]}})
    assert "managedFields" not in reset["metadata"]
    later = track(reset, {**reset, "spec": {"replicas": 2}})
    assert "managedFields" not in later["metadata"]


def test_client_may_replace_entries_by_valid_ones_but_not_through_a_subresource():
    live = track(None, a_deployment(replicas=1))
    renamed = [{**live["metadata"]["managedFields"][0], "manager": "other"}]
    edited = {**live, "metadata": {**live["metadata"], "managedFields": renamed}}
    assert list(sets(track(live, edited))) == ["other"]
    assert list(sets(track(live, edited, subresource="status"))) == ["editor"]
    for broken in (
        [{"manager": "x"}],
        [{**renamed[0], "fieldsV1": {"spec": {}}}],
        [{**renamed[0], "fieldsV1": "x"}],
        [{**renamed[0], "operation": "Delete"}],
        ["x"],
    ):
        unreadable = {**live, "metadata": {**live["metadata"], "managedFields": broken}}
        assert list(sets(track(live, unreadable))) == ["editor"]


def test_more_than_ten_update_entries_are_merged_into_ancient_changes():
    live = track(None, a_deployment(replicas=0), "m00")
    for number in range(1, 14):
        new = copy.deepcopy(live)
        new["metadata"].setdefault("labels", {})[f"l{number:02}"] = "x"
        live = track(live, new, f"m{number:02}", now=NOW + timedelta(minutes=number))
    managers = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert "ancient-changes" in managers
    assert "m13" in managers
    assert "m00" not in managers


def test_list_with_items_without_keys_is_one_field():
    twice = [{"name": "a"}, {"name": "a"}]
    live = track(None, a_deployment(template={"spec": {"containers": [{"name": "a"}]}}))
    after = track(live, a_deployment(template={"spec": {"containers": twice}}) | {"metadata": live["metadata"]}, "two")
    assert sets(after)["two"] == {"f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}}
    created = track(None, a_deployment(template={"spec": {"initContainers": twice}}))
    assert sets(created)["editor"] == {"f:spec": {"f:template": {"f:spec": {"f:initContainers": {}}}}}


def test_field_with_a_new_type_is_one_changed_field():
    schema = from_openapi({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    live = track(None, {"metadata": {}, "spec": {"a": {"b": 1}}}, "one", schema=schema)
    after = track(live, {**live, "spec": {"a": 5}}, "two", schema=schema)
    assert sets(after)["two"] == {"f:spec": {"f:a": {}}}


def test_manager_is_unknown_if_the_client_sent_none():
    assert list(sets(track(None, a_deployment(replicas=1), ""))) == ["unknown"]
