"""Reading manifests: several documents, lists, directories, and errors with their origin."""

from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.terminal.manifests import read_manifests

TWO = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"
LAUGHS = [(chr(98 + n), ",".join([f"*{chr(97 + n)}"] * 9)) for n in range(9)]
"""Each value holds nine references to the one before."""


def test_a_directory_is_read_in_order_and_each_document_has_its_origin(tmp_path: Path) -> None:
    (tmp_path / "2.yaml").write_text(TWO)
    (tmp_path / "1.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    found = read_manifests([str(tmp_path)])
    assert [(d.origin.removeprefix(f"{tmp_path}/"), d.manifest["metadata"]["name"]) for d in found] == [
        ("1.json", "c"),
        ("2.yaml, document 1 (line 1)", "a"),
        ("2.yaml, document 2 (line 6)", "b"),
    ]


def test_a_list_is_replaced_by_its_items(tmp_path: Path) -> None:
    item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}"
    file = tmp_path / "list.yaml"
    file.write_text(f"apiVersion: v1\nkind: List\nitems: [{item % 'a'}, {item % 'b'}]\n")
    assert [d.origin for d in read_manifests([str(file)])] == [f"{file}, item 1", f"{file}, item 2"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "while parsing a flow node did not find expected node content in line 2"),
        (TWO + "---\n# three\nkind: B\n b: 3\n", "in line 12"),
        ("a: 1\nb: 2\na: 3\n", 'line 3: key "a" already set in map'),
        ("[" * 200, "exceeded max depth"),
        ("a: &a [1, 1]\n" + "".join(f"{c}: &{c} [{p}]\n" for c, p in LAUGHS), "excessive aliasing"),
        ("# nothing\n---\n", "contains no manifest"),
        ("- 1", "a manifest is a mapping, not a list"),
        ("apiVersion: v1", "kind: Required value"),
        ("kind: ConfigMap", "apiVersion: Required value"),
        ("{apiVersion: v1, kind: ConfigMap}", "metadata: Required value"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: 3}}", "metadata.name: Required value"),
    ],
)
def test_an_invalid_manifest_is_rejected_with_file_and_field(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_manifests([str(file)])
    assert str(caught.value).startswith(str(file))
    assert problem in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        read_manifests([str(tmp_path / "absent.yaml")])
    with pytest.raises(ConfigurationError, match="no \\.yaml"):
        read_manifests([str(tmp_path)])
