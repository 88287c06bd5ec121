"""Finalizers: sorted when one is added, kept in order otherwise, and never lost."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers

NAMES = st.lists(st.sampled_from(["example.com/a", "example.com/b", "example.com/c"]), unique=True)


def an_object(finalizers: list[str] | None) -> dict[str, Any]:
    return {"metadata": {"name": "x", "finalizers": finalizers}}


@given(NAMES, NAMES)
def test_adding_keeps_all_that_were_there(held: list[str], added: list[str]) -> None:
    result = with_finalizers(an_object(held), *added)
    assert set(result) == {*held, *added}
    assert len(result) == len(set(result))
    assert result == (held if set(added) <= set(held) else sorted(result))


@given(NAMES, NAMES)
def test_removing_keeps_the_others_in_order(held: list[str], removed: list[str]) -> None:
    result = without_finalizers(an_object(held), *removed)
    assert result == [name for name in held if name not in removed]
    assert not any(has_finalizer(an_object(result), name) for name in removed)


def test_an_object_without_finalizers_has_none() -> None:
    for obj in (an_object(None), {"metadata": {"name": "x"}}):
        assert not has_finalizer(obj, "example.com/a")
        assert without_finalizers(obj, "example.com/a") == []
        assert with_finalizers(obj, "example.com/a") == ["example.com/a"]
