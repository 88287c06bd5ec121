"""Server-side apply: its rules, and sequences recorded from Kubernetes.

`apply_sequences.json` has random sequences of apply and update with the results of k8s.io/apimachinery's field manager
(v0.34): objects, managed fields and conflict texts.
"""

import copy
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from federation.apimachinery.errors import ApiError, Conflict
from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.fieldownership.apply import LAST_APPLIED, apply
from federation.apiserver.semantics.fieldownership.managedfields import track_update
from federation.apiserver.semantics.schema.builtin import builtin_schema

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
LATER = datetime(2024, 5, 1, 13, 0, 0, tzinfo=UTC)
DEPLOYMENT = builtin_schema("apps", "v1", "Deployment")
SEQUENCES = json.loads((Path(__file__).parent / "apply_sequences.json").read_text())


def a_deployment(**spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


def containers(*items):
    return {"template": {"spec": {"containers": list(items)}}}


def applied(live, config, manager="me", *, force=False, now=NOW, schema=DEPLOYMENT, subresource="", **more):
    return apply(
        schema,
        live,
        config,
        manager=manager,
        force=force,
        api_version="apps/v1",
        subresource=subresource,
        now=now,
        **more,
    )


def updated(live, new, manager="editor", *, now=NOW, subresource="", schema=DEPLOYMENT):
    return track_update(schema, live, new, manager=manager, api_version="apps/v1", subresource=subresource, now=now)


def owners(obj):
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", [])
    }


def test_create_by_apply_owns_every_field_of_the_configuration():
    config = a_deployment(replicas=3, **containers({"name": "a", "image": "i", "ports": [{"containerPort": 80}]}))
    config["metadata"]["labels"] = {"app": "web"}
    created = applied(None, config)
    assert created["spec"] == config["spec"]
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": "2024-05-01T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:replicas": {},
                    "f:template": {
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"a"}': {
                                    ".": {},
                                    "f:image": {},
                                    "f:name": {},
                                    "f:ports": {
                                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                                    },
                                }
                            }
                        }
                    },
                },
            },
        }
    ]


def test_repeated_apply_changes_nothing():
    config = a_deployment(replicas=3, **containers({"name": "a", "image": "i"}))
    live = applied(None, config)
    again = applied(live, copy.deepcopy(config), now=LATER)
    assert again == live


def test_inputs_are_not_changed():
    live = applied(None, a_deployment(replicas=3, **containers({"name": "a", "image": "i"})))
    config = a_deployment(replicas=4, **containers({"name": "a", "image": "j"}, {"name": "b", "image": None}))
    before = copy.deepcopy((live, config))
    applied(live, config)
    assert (live, config) == before


def test_field_dropped_by_its_only_owner_is_removed():
    live = applied(None, a_deployment(replicas=3, paused=True))
    live["spec"]["minReadySeconds"] = 5  # without owner
    after = applied(live, a_deployment(replicas=3))
    assert after["spec"] == {"replicas": 3, "minReadySeconds": 5}


def test_dropped_field_stays_while_another_manager_owns_it():
    live = applied(None, a_deployment(replicas=3, paused=True), "one")
    live = applied(live, a_deployment(paused=True), "two")
    after = applied(live, a_deployment(replicas=3), "one")
    assert after["spec"] == {"replicas": 3, "paused": True}


def test_dropped_list_item_is_removed_with_its_defaults():
    live = applied(None, a_deployment(**containers({"name": "a", "image": "i"}, {"name": "b", "image": "i"})))
    live["spec"]["template"]["spec"]["containers"][1]["imagePullPolicy"] = "Always"
    after = applied(live, a_deployment(**containers({"name": "a", "image": "i"})))
    assert after["spec"]["template"]["spec"]["containers"] == [{"name": "a", "image": "i"}]


def test_single_conflict_has_the_text_of_kubernetes():
    live = updated(None, a_deployment(replicas=1), "kubectl-client-side-apply")
    with pytest.raises(Conflict) as caught:
        applied(live, a_deployment(replicas=2))
    text = 'conflict with "kubectl-client-side-apply" using apps/v1'
    assert caught.value.message == f"Apply failed with 1 conflict: {text}: .spec.replicas"
    assert caught.value.to_status()["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": text, "field": ".spec.replicas"}
    ]
    assert caught.value.code == 409


def test_several_conflicts_are_listed_by_manager():
    live = applied(None, a_deployment(**containers({"name": "a", "image": "i"})), "other")
    live = updated(live, {**live, "status": {"replicas": 1}}, "kcm", subresource="status")
    live = updated(live, {**live, "spec": {**live["spec"], "replicas": 1}}, "hpa", subresource="scale")
    with pytest.raises(Conflict) as caught:
        applied(live, a_deployment(replicas=2, **containers({"name": "a", "image": "j"})))
    assert caught.value.message == (
        'Apply failed with 2 conflicts: conflicts with "hpa" with subresource "scale" using apps/v1:\n- .spec.replicas\n'
        'conflicts with "other":\n- .spec.template.spec.containers[name="a"].image'
    )


def test_equal_values_are_shared_without_conflict():
    live = applied(None, a_deployment(replicas=1), "one")
    both = applied(live, a_deployment(replicas=1), "two")
    assert owners(both)["one", "Apply", ""] == owners(both)["two", "Apply", ""] == {"f:spec": {"f:replicas": {}}}


def test_force_takes_over_only_the_conflicting_fields():
    live = applied(None, a_deployment(replicas=1, paused=True), "one")
    after = applied(live, a_deployment(replicas=2), "two", force=True)
    assert after["spec"] == {"replicas": 2, "paused": True}
    assert owners(after) == {
        ("one", "Apply", ""): {"f:spec": {"f:paused": {}}},
        ("two", "Apply", ""): {"f:spec": {"f:replicas": {}}},
    }


def test_object_without_managed_fields_belongs_to_before_first_apply():
    live = a_deployment(replicas=1, paused=True)
    with pytest.raises(Conflict, match="before-first-apply"):
        applied(live, a_deployment(replicas=2))
    after = applied(live, a_deployment(replicas=1))
    assert owners(after)["before-first-apply", "Update", ""] == {"f:spec": {"f:paused": {}, "f:replicas": {}}}


def test_kubectl_takes_over_fields_of_its_client_side_apply():
    config = a_deployment(replicas=1)
    live = a_deployment(replicas=1)
    live["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(config)}
    live = updated(None, live, "kubectl-client-side-apply")
    with pytest.raises(Conflict):
        applied(live, a_deployment(replicas=2), "somebody")
    after = applied(live, a_deployment(replicas=2), "kubectl")
    assert after["spec"]["replicas"] == 2
    assert json.loads(after["metadata"]["annotations"][LAST_APPLIED])["spec"] == {"replicas": 2}


def test_unknown_field_is_reported():
    with pytest.raises(ApiError) as caught:
        applied(None, a_deployment(replcas=1))
    assert caught.value.code == 400
    assert caught.value.message == (
        "failed to create typed patch object (default/web; apps/v1, Kind=Deployment):"
        " .spec.replcas: field not declared in schema"
    )


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            containers({"name": "a"}, {"name": "a"}),
            '.spec.template.spec.containers: duplicate entries for key [name="a"]',
        ),
        (containers({"image": "a"}), 'omits key field "name"'),
        (
            {"template": {"spec": {"containers": {"name": "a"}}}},
            ".spec.template.spec.containers: expected list, got map",
        ),
        ({"strategy": ["a"]}, ".spec.strategy: expected map, got list"),
        ({"strategy": "x"}, '.spec.strategy: expected map, got "x"'),
        ({"replcas": 1, "replics": 1}, "errors:\n  .spec.replcas: field not declared"),
    ],
)
def test_configuration_that_does_not_match_the_schema_is_refused(spec, text):
    with pytest.raises(ApiError) as caught:
        applied(None, a_deployment(**spec))
    assert text in caught.value.message


def test_null_removes_the_field_and_is_owned():
    live = updated(None, a_deployment(replicas=1, paused=True))
    after = applied(live, a_deployment(replicas=None), force=True)
    assert after["spec"] == {"paused": True}
    assert owners(after)["me", "Apply", ""] == {"f:spec": {"f:replicas": {}}}


def test_status_is_applied_only_through_its_subresource():
    live = applied(None, a_deployment(replicas=1), ignored=frozenset({"status"}))
    after = applied(live, {**a_deployment(replicas=9), "status": {"replicas": 1}}, subresource="status")
    assert after["spec"] == {"replicas": 1}
    assert after["status"] == {"replicas": 1}
    assert owners(after)["me", "Apply", "status"] == {"f:status": {"f:replicas": {}}}
    plain = applied(live, {**a_deployment(replicas=1), "status": {"replicas": 7}}, ignored=frozenset({"status"}))
    assert plain == live


def test_items_have_the_order_of_the_configuration_and_others_keep_their_position():
    live = updated(None, a_deployment(**containers({"name": "x"}, {"name": "a"}, {"name": "b"})))
    after = applied(live, a_deployment(**containers({"name": "b"}, {"name": "a"})))
    names = [item["name"] for item in after["spec"]["template"]["spec"]["containers"]]
    assert names == ["x", "b", "a"]


def test_sets_merge_and_lose_dropped_items():
    config = a_deployment()
    config["metadata"]["finalizers"] = ["a/one", "a/two"]
    live = applied(None, config)
    live["metadata"]["finalizers"].append("b/theirs")
    config["metadata"]["finalizers"] = ["a/two"]
    after = applied(live, config)
    assert after["metadata"]["finalizers"] == ["a/two", "b/theirs"]
    assert owners(after)["me", "Apply", ""]["f:metadata"]["f:finalizers"] == {'v:"a/two"': {}}


def test_fields_set_by_the_server_are_not_applied():
    live = applied(None, a_deployment(replicas=1))
    live["metadata"] |= {"uid": "u", "generation": 4, "creationTimestamp": "2024-01-01T00:00:00Z"}
    config = a_deployment(replicas=1)
    config["metadata"] |= {"creationTimestamp": None, "generation": 1}
    assert applied(live, config) == live


def test_unknown_fields_of_a_custom_resource_are_owned_with_atomic_lists():
    schema = from_openapi(
        {
            "type": "object",
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
    )
    config = {"kind": "X", "metadata": {"name": "x"}, "spec": {"a": {"b": 1}, "l": [{"name": "n"}]}}
    after = applied(None, config, schema=schema)
    assert owners(after)["me", "Apply", ""] == {"f:spec": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}}
    config["spec"]["l"] = []
    assert applied(after, config, schema=schema)["spec"] == {"a": {"b": 1}, "l": []}


def test_apply_has_one_entry_for_all_versions():
    live = applied(None, a_deployment(replicas=1))
    after = apply(
        DEPLOYMENT,
        live,
        a_deployment(replicas=1),
        manager="me",
        force=False,
        api_version="apps/v2",
        subresource="",
        now=NOW,
    )
    assert [entry["apiVersion"] for entry in after["metadata"]["managedFields"]] == ["apps/v2"]


@pytest.mark.parametrize("steps", SEQUENCES, ids=range(len(SEQUENCES)))
def test_recorded_sequences_have_the_results_of_kubernetes(steps):
    live = None
    for step in steps:
        if "error" in step:
            with pytest.raises(Conflict) as caught:
                applied(live, step["object"], step["manager"], force=step["force"])
            assert caught.value.message == step["error"]["message"]
            causes = sorted([cause["message"], cause["field"]] for cause in caught.value.details["causes"])
            assert causes == step["error"]["causes"]
            continue
        if step["op"] == "apply":
            after = applied(live, step["object"], step["manager"], force=step["force"])
        else:
            subresource = "status" if step["op"] == "status" else ""
            after = updated(live, step["object"], step["manager"], subresource=subresource)
        found = [
            {key: entry[key] for key in ("manager", "operation", "subresource", "fieldsV1") if key in entry}
            for entry in after["metadata"].get("managedFields", [])
        ]
        assert sorted(found, key=str) == sorted(step["owners"], key=str)
        assert comparable(after) == step["expected"]
        live = defaulted(after)


def comparable(obj):
    """Return the object in Go's typed form, in which empty and absent are the same."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "uid")}
    return _without_empty({**obj, "metadata": metadata})


def _without_empty(value):
    if isinstance(value, dict):
        kept = {key: _without_empty(inner) for key, inner in value.items()}
        return {
            key: inner
            for key, inner in kept.items()
            if inner not in (None, {}, [], "") and not (key == "port" and inner == 0)
        }
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def defaulted(obj):
    """Apply the defaults of the recording between two steps: no empty lists, container resources, a uid."""

    def clean(value):
        if isinstance(value, dict):
            return {key: clean(inner) for key, inner in value.items() if inner is not None and inner != []}
        return [clean(item) for item in value] if isinstance(value, list) else value

    live = clean(obj)
    for container in live.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
        container.setdefault("resources", {})
    live["metadata"].setdefault("uid", "uid1")
    return live
