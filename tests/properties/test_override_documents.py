"""Changes of YAML and JSON documents inside texts have the result of a JSON patch."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.jsonpatch import Document, PatchError
from federation.planning.overrides.documents import DocumentEditor
from federation.planning.overrides.errors import OverrideError


def edited(text: str, operation: dict[str, Any], form: str) -> str:
    """Return the text of a ConfigMap after one change."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"app": text}}
    (patch,) = DocumentEditor().patches(config_map, [{"fieldPath": "/data/app", form: [operation]}])
    result: str = patch["value"]
    return result


_KEYS = st.sampled_from(["a", "b", "no", "1", "x/y", "~", ""])
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["", "x", "yes", "0o7", "a: b", "é\n\tz"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(
    document=st.dictionaries(_KEYS, _VALUES, max_size=4),
    keys=st.lists(st.one_of(_KEYS, st.sampled_from(["0", "-", "-1", "2"])), min_size=1, max_size=3),
    operator=st.sampled_from(["add", "replace", "remove"]),
    value=_VALUES,
)
def test_yaml_and_json_agree_with_json_patch(
    document: dict[str, Any], keys: list[str], operator: str, value: Any
) -> None:
    pointer = "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)
    operation = {"subPath": pointer, "operator": operator, "value": value}
    expected: Any = Document(document, is_lenient=True)
    try:
        expected.apply(operator, keys, value)
    except PatchError:
        for text, form in ((yaml.safe_dump(document), "yaml"), (json.dumps(document), "json")):
            with pytest.raises(OverrideError):
                edited(text, operation, form)
        return
    # PyYAML writes a key such as `no` quoted, and reads it as a text again.
    assert yaml.safe_load(edited(yaml.safe_dump(document), operation, "yaml")) == expected.value
    assert json.loads(edited(json.dumps(document), operation, "json")) == expected.value
