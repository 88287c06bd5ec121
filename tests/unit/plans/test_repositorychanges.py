"""Changes of a repository are found by object, not by file, and what is no manifest is left out."""

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.plans.repositorychanges import compare_files, with_annotation


def a_map(name: str, value: str = "a", namespace: str = "shop", version: str = "v1") -> str:
    return f"apiVersion: {version}\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{a: {value}}}"


def changes(before: dict[str, str], after: dict[str, str]) -> tuple[list[str], list[str]]:
    found = compare_files(before, after)
    names = [[each.manifest["metadata"]["name"] for each in side] for side in (found.documents, found.deleted)]
    return names[0], names[1]


@pytest.mark.parametrize(
    ("before", "after", "changed", "deleted"),
    [
        ({}, {"a.yaml": a_map("x")}, ["x"], []),
        ({"a.yaml": a_map("x")}, {}, [], ["x"]),
        ({"a.yaml": a_map("x")}, {"a.yaml": a_map("x", "b")}, ["x"], []),
        (
            {"a.yaml": f"{a_map('x')}\n---\n{a_map('yy')}"},
            {"a.yaml": f"{a_map('yy')}\n---\n{a_map('z')}"},
            ["z"],
            ["x"],
        ),
        ({"a.yaml": a_map("x")}, {"b.yaml": a_map("x")}, [], []),
        ({"a.yaml": a_map("x")}, {"a.yaml": f"# only a comment\n{a_map('x')}\n"}, [], []),
        ({"a.yaml": a_map("x")}, {"a.yaml": a_map("x", namespace="other")}, ["x"], ["x"]),
        ({"a.yaml": "{{ broken"}, {"a.yaml": a_map("x")}, ["x"], []),
        ({"v.yaml": "replicas: 3"}, {"v.yaml": "replicas: 4"}, [], []),
        ({}, {"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization"}, [], []),
        ({}, {"empty.yaml": ""}, [], []),
    ],
)
def test_objects_are_compared(
    before: dict[str, str], after: dict[str, str], changed: list[str], deleted: list[str]
) -> None:
    assert changes(before, after) == (changed, deleted)


def test_what_is_no_manifest_is_named() -> None:
    found = compare_files({"old.yaml": "{{ broken"}, {"v.yaml": f"a: b\n---\n{a_map('x')}"})
    assert [text.partition(": ")[0] for text in found.left_out] == [
        "what old.yaml had before",
        "v.yaml, document 1 (line 1)",
    ]


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ({"a.yaml": "{{ broken"}, "a.yaml"),
        ({"a.yaml": a_map("x"), "b.yaml": a_map("x", "b")}, "b.yaml: a.yaml also has ConfigMap x"),
        ({"a.yaml": "apiVersion: v1\nkind: ConfigMap"}, "metadata"),
        ({"a.yaml": a_map("../x")}, "metadata.name"),
    ],
)
def test_a_wrong_file_is_named(after: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        compare_files({}, after)
    assert says in str(caught.value)


def test_an_annotation_is_added_beside_others() -> None:
    (document,) = compare_files({}, {"a.yaml": a_map("x")}).documents
    document.manifest["metadata"]["annotations"] = {"mine": "1"}
    (found,) = with_annotation([document], "change", "abc")
    assert found.manifest["metadata"]["annotations"] == {"mine": "1", "change": "abc"}
    assert document.manifest["metadata"]["annotations"] == {"mine": "1"}
    wrong = {**document.manifest, "metadata": {"name": "x", "annotations": "no map"}}
    (kept,) = with_annotation([type(document)("a", wrong)], "change", "abc")
    assert kept.manifest == wrong
