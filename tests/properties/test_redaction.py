"""No value of a Secret survives in what a support bundle takes from an object or a text."""

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api.secretvalues import secret_values
from federation.planning.diagnosis.redaction import LENGTH_MIN, Redactor, reduced

secrets = st.lists(st.text(min_size=LENGTH_MIN, max_size=20), min_size=1, max_size=5)
kinds = st.sampled_from(
    ["FederatedCluster", "FederatedObject", "OverridePolicy", "Secret", "ConfigMap", "Event", "PropagationPolicy"]
)


def holding(values: list[str]) -> st.SearchStrategy[Any]:
    """Return JSON values with the secrets anywhere: whole, inside of texts, in base64, and in keys."""
    forms = st.sampled_from(values).flatmap(
        lambda value: st.sampled_from([value, f"a{value}b", base64.b64encode(value.encode()).decode()])
    )
    texts = st.one_of(st.text(max_size=5), forms)
    return st.recursive(
        st.one_of(texts, st.integers(), st.booleans(), st.none()),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
        max_leaves=8,
    )


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *texts_in(each))]
    return [text for each in value for text in texts_in(each)] if isinstance(value, list) else []


def to_secret(values: list[str]) -> dict[str, Any]:
    data = {f"key-{number}": base64.b64encode(value.encode()).decode() for number, value in enumerate(values)}
    return {"kind": "Secret", "metadata": {"name": "s"}, "data": data}


@pytest.mark.slow("generated objects of many fields")
@given(st.data(), secrets, kinds)
def test_no_secret_survives_in_an_object(data: st.DataObject, values: list[str], kind: str) -> None:
    anything = data.draw(
        st.fixed_dictionaries(
            {
                "spec": st.dictionaries(st.sampled_from(["placements", "template", "taints"]), holding(values)),
                "status": holding(values),
                "message": holding(values),
                "data": holding(values),
                "metadata": st.fixed_dictionaries(
                    {
                        "name": st.just("x"),
                        "annotations": st.dictionaries(
                            st.sampled_from(["kubeadmiral.io/x", "note"]), st.sampled_from(values)
                        ),
                    }
                ),
            }
        )
    )
    redactor = Redactor(secret_values(to_secret(values)))
    left = texts_in(redactor.value(reduced({**anything, "kind": kind})))
    encoded = [base64.b64encode(value.encode()).decode() for value in values]
    assert not [text for text in left for value in (*values, *encoded) if value in text]


@given(secrets, st.lists(st.text(max_size=5), max_size=6))
def test_no_secret_survives_in_a_text_or_a_log_line(values: list[str], between: list[str]) -> None:
    redactor = Redactor(value.encode() for value in values)
    text = "".join(part + value for part, value in zip([*between, "", "", "", "", ""], values, strict=False))
    assert not [value for value in values if value in redactor.text(text)]
    line = orjson.dumps({"event": text}).decode()
    escaped = [orjson.dumps(value).decode()[1:-1] for value in values]
    assert not [value for value in escaped if value in redactor.text(line)]


@given(st.lists(st.text(alphabet="ABCDEF+/", min_size=LENGTH_MIN), min_size=2, max_size=4))
def test_each_line_of_a_key_is_removed(lines: list[str]) -> None:
    redactor = Redactor(["\n".join(lines).encode()])
    assert not [line for line in lines if line in redactor.text(f"cannot parse {lines[-1]} after {lines[0]}")]


def test_manifests_and_values_of_overrides_are_left_out_even_if_they_are_not_known() -> None:
    template = {"spec": {"env": [{"name": "PASSWORD", "value": "unknown-secret"}]}}
    for kind in ("FederatedObject", "ClusterFederatedObject", "OverridePolicy", "Deployment", "Secret"):
        obj = {
            "kind": kind,
            "metadata": {
                "name": "x",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "unknown-secret"},
                "managedFields": ["unknown-secret"],
            },
            "spec": {"template": template, "overrides": ["unknown-secret"], "overrideRules": ["unknown-secret"]},
            "data": {"x": "unknown-secret"},
        }
        assert "unknown-secret" not in str(reduced(obj))


def test_short_values_stay() -> None:
    assert Redactor([b"true", b"5432"]).text("true 5432") == "true 5432"
    assert Redactor([]).text("anything") == "anything"
