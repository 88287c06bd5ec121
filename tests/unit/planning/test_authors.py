"""Who is on record as the author of what is still in a wish."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.authors import authors_of, override_authors, record, to_annotation

ANN, BOB, EVE = ({"username": name, "groups": ["tenants"]} for name in ("ann", "bob", "eve"))
FIRST, SECOND, THIRD = ({"overriders": {"image": name}} for name in ("a", "b", "c"))
SELECTED = [{"kind": "Deployment"}]


def written(spec: Any, old: Object | None, user: Any) -> Object:
    """Return an object as admission stores it."""
    text = record({"spec": spec}, old, user)
    return {"metadata": {"annotations": {} if text is None else {names.AUTHORS: text}}, "spec": spec}


def by_turns(*writes: tuple[Any, Any]) -> Object:
    obj: Object | None = None
    for user, spec in writes:
        obj = written(spec, obj, user)
    assert obj is not None
    return obj


def rules(*listed: Any, selectors: Any = None) -> Object:
    return {"overrideRules": list(listed), "resourceSelectors": selectors or SELECTED}


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        pytest.param([(ANN, rules(FIRST))], [ANN], id="a creation"),
        pytest.param([(ANN, rules(FIRST)), (BOB, rules(FIRST))], [ANN], id="a write without a change"),
        pytest.param([(ANN, rules(FIRST)), (BOB, rules(FIRST, SECOND))], [ANN, BOB], id="a rule is added"),
        pytest.param([(ANN, rules(FIRST)), (BOB, rules(SECOND))], [ANN, BOB], id="the selectors are still the first's"),
        pytest.param(
            [(ANN, rules(FIRST)), (BOB, rules(SECOND, selectors=[{"kind": "Job"}]))], [BOB], id="all is replaced"
        ),
        pytest.param(
            [(ANN, rules(FIRST)), (BOB, rules(FIRST, selectors=[{"kind": "Job"}]))],
            [ANN, BOB],
            id="a rule applies to other objects",
        ),
        pytest.param(
            [(ANN, rules(FIRST)), (BOB, rules(FIRST, SECOND)), (ANN, rules(FIRST, SECOND, THIRD))],
            [BOB, ANN],
            id="the latest writer is last",
        ),
        pytest.param(
            [(ANN, rules(FIRST)), (BOB, rules(FIRST, SECOND)), (EVE, rules(SECOND, FIRST))],
            [ANN, BOB],
            id="another order is no other rule",
        ),
        pytest.param([(ANN, {"template": 1}), (BOB, {"template": 2})], [BOB], id="a template has one author"),
        pytest.param([(ANN, {}), (BOB, {})], [ANN], id="an empty wish"),
    ],
)
def test_who_wrote_what_is_there_is_on_record(writes: list[tuple[Any, Any]], expected: list[Any]) -> None:
    assert authors_of(by_turns(*writes)) == expected


def test_parts_of_before_the_record_have_no_author() -> None:
    before: Object = {"metadata": {}, "spec": rules(FIRST)}
    assert record({"spec": rules(FIRST)}, before, ANN) is None
    assert authors_of(written(rules(FIRST, SECOND), before, ANN)) == [ANN]


def test_an_author_stays_while_somebody_else_changed_his_parts() -> None:
    """Mutating admission or a controller changes a rule without a record; whose it was is not forgotten then."""
    obj = by_turns((ANN, rules(FIRST)))
    obj["spec"] = rules(SECOND, selectors=[{"kind": "Job"}])
    assert authors_of(written(rules(SECOND, THIRD, selectors=[{"kind": "Job"}]), obj, BOB)) == [ANN, BOB]


def test_a_new_token_makes_no_new_author() -> None:
    first = {**ANN, "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"], "team": ["a"]}, "uid": "7"}
    second = {**ANN, "extra": {"authentication.kubernetes.io/credential-id": ["JTI=2"], "team": ["a"]}, "uid": "7"}
    obj = by_turns((first, rules(FIRST)), (second, rules(FIRST, SECOND)))
    assert authors_of(obj) == [{**ANN, "uid": "7", "extra": {"team": ["a"]}}]


@pytest.mark.parametrize("text", ["", "{", "7", "[7]", '[{"user": 7}]', '[{"user": {"username": "a", "groups": 1}}]'])
def test_a_malformed_record_has_no_authors(text: str) -> None:
    obj: Object = {"metadata": {"annotations": {names.AUTHORS: text, names.OVERRIDE_AUTHORS: text}}, "spec": {}}
    assert authors_of(obj) == override_authors(obj) == []
    assert authors_of(written({"a": 1}, obj, ANN)) == [ANN]


def test_users_are_listed_once() -> None:
    text = to_annotation([BOB, ANN, dict(BOB)])
    assert override_authors({"metadata": {"annotations": {names.OVERRIDE_AUTHORS: text}}}) == [ANN, BOB]
    assert to_annotation([]) is None
    assert override_authors({"metadata": {}}) == []


def test_another_order_of_keys_is_no_change() -> None:
    first, second = {"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2, "c": 1}, "a": 1}
    assert authors_of(by_turns((ANN, {"template": first}), (BOB, {"template": second}))) == [ANN]
