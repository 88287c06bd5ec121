"""Strategic merge patch: its rules, and cases recorded from k8s.io/apimachinery v0.34.

One difference is intended: `$patch: replace` in a map that the live object lacks sets the map; Kubernetes drops it.
"""

import copy
import json
from pathlib import Path

import pytest

from federation.apimachinery.errors import BadRequest, Invalid
from federation.apiserver.semantics.patch.strategic import strategic_merge_patch
from federation.apiserver.semantics.schema.builtin import builtin_schema

DEPLOYMENT = builtin_schema("apps", "v1", "Deployment")
POD_SPEC = builtin_schema("", "v1", "Pod").properties["spec"]
METADATA = DEPLOYMENT.properties["metadata"]
CASES = json.loads((Path(__file__).parent / "strategic_cases.json").read_text())


def patched(live, patch, schema=POD_SPEC):
    before = copy.deepcopy((live, patch))
    result = strategic_merge_patch(schema, live, patch)
    assert (live, patch) == before
    return result


def without_empty(value):
    if isinstance(value, dict):
        kept = {key: without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in (None, {}, [], "")}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_recorded_cases_have_the_results_of_kubernetes(case):
    assert without_empty(patched(case["live"], case["patch"], DEPLOYMENT)) == case["expected"]


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        (
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
            {"containers": [{"name": "b", "image": "2"}]},
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]},
        ),
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "b"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"$patch": "delete", "name": "a"}]},
            {"containers": [{"name": "b"}]},
        ),
        (
            {"containers": [{"name": "a", "image": "1"}]},
            {"containers": [{"$patch": "replace"}, {"name": "c"}]},
            {"containers": [{"name": "c"}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        ({"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"a": None}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "replace", "b": "2"}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "delete"}}, {"nodeSelector": {}}),
        ({}, {"nodeSelector": {"$patch": "delete"}}, {}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]},
            {"volumes": [{"name": "v", "configMap": {"name": "c"}}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]},
            {"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]},
        ),
        ({}, {"$setElementOrder/containers": [{"name": "c"}]}, {}),
        (
            {},
            {
                "$setElementOrder/containers": [{"name": "c"}, {"name": "d"}],
                "containers": [{"name": "c", "image": None}],
            },
            {"containers": [{"name": "c"}]},
        ),
        ({"hostname": "a"}, {"hostname": None, "subdomain": "b"}, {"subdomain": "b"}),
        ({"containers": []}, {"containers": []}, {"containers": []}),
        ({"securityContext": "odd"}, {"securityContext": {"runAsUser": 1}}, {"securityContext": {"runAsUser": 1}}),
        (
            {},
            {"affinity": {"nodeAffinity": None, "$retainKeys": [], "podAffinity": {"$patch": "delete"}}},
            {"affinity": {}},
        ),
    ],
)
def test_rules(live, patch, result):
    assert patched(live, patch) == result


def test_primitive_lists_merge_as_sets_and_support_deletion():
    live = {"finalizers": ["a", "b", "c"]}
    assert patched(live, {"finalizers": ["d", "b"]}, METADATA) == {"finalizers": ["d", "a", "b", "c"]}
    gone = patched(live, {"$deleteFromPrimitiveList/finalizers": ["b"]}, METADATA)
    assert gone == {"finalizers": ["a", "c"]}
    both = patched(
        live,
        {
            "$setElementOrder/finalizers": ["d", "a"],
            "$deleteFromPrimitiveList/finalizers": ["b"],
            "finalizers": ["d"],
        },
        METADATA,
    )
    assert both == {"finalizers": ["d", "a", "c"]}


def test_struct_with_patch_strategy_replace_is_replaced():
    budget = builtin_schema("policy", "v1", "PodDisruptionBudget").properties["spec"]
    live = {"selector": {"matchLabels": {"a": "b"}}}
    patch = {"selector": {"matchLabels": {"c": "d"}}}
    assert patched(live, patch, budget) == patch


@pytest.mark.parametrize(
    ("live", "patch", "text"),
    [
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"image": "x"}]},
            "does not contain declared merge key: name",
        ),
        ({"containers": [{"name": "a"}]}, {"containers": [{"$patch": "delete"}]}, "declared merge key: name"),
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"$patch": "merge", "name": "a"}]},
            "cannot yet be specified",
        ),
        ({"containers": [{"name": "a"}]}, {"containers": [{"$patch": "x", "name": "a"}]}, "unknown patch type: x"),
        ({"containers": [{"name": "a"}]}, {"containers": ["a"]}, "types are not identical"),
        ({"nodeSelector": {}}, {"nodeSelector": {"$patch": "merge"}}, "unknown patch type: merge"),
        (
            {"affinity": {"x": {}}},
            {"affinity": {"x": {"a": 1}}},
            'find api field in struct Affinity for the json field "x"',
        ),
        ({}, {"$retainKeys": "x"}, "retainKeys"),
        ({}, {"$retainKeys": ["a"], "hostname": "x"}, "retainKeys"),
        ({}, {"$setElementOrder/containers": None}, "setElementOrder"),
        ({"containers": [{"name": "a"}]}, {"$setElementOrder/containers": [], "containers": {}}, "setElementOrder"),
        (
            {"containers": [{"name": "a"}]},
            {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]},
            "doesn't match $setElementOrder",
        ),
    ],
)
def test_malformed_patches_are_bad_requests(live, patch, text):
    with pytest.raises(BadRequest) as caught:
        patched(live, patch)
    assert text in caught.value.message


def test_invalid_patches_of_other_shapes_are_refused():
    with pytest.raises(BadRequest):
        strategic_merge_patch(METADATA, {}, [])
    with pytest.raises(BadRequest, match="primitive list"):
        patched({"finalizers": ["a"]}, {"$deleteFromPrimitiveList/finalizers": [{}]}, METADATA)
    with pytest.raises(Invalid, match="lists of lists"):
        patched({"finalizers": ["a"]}, {"finalizers": [["b"]]}, METADATA)
