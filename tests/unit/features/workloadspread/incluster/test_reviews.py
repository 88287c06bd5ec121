"""Answers to AdmissionReviews: patches, denials, and requests that are admitted because the service cannot decide."""

import asyncio
import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import BadRequest, ClusterUnreachable, InternalError
from federation.apimachinery.jsonpatch import apply_json_patch, to_operations
from federation.apimachinery.resources import Object
from federation.features.workloadspread.incluster.reviews import ReviewAnswer, Reviews

POD: Object = {"metadata": {"name": "web", "annotations": {"a/b": "1"}}, "spec": {"nodeName": ""}}


def a_review(obj: Object | None = None) -> Object:
    request = {"uid": "u-1", "object": obj if obj is not None else POD}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def respond(outcome: Any) -> Object:
    """Return the response of a handler that returns or raises the outcome."""

    async def handle(request: Object) -> ReviewAnswer:
        assert request["uid"] == "u-1"
        if isinstance(outcome, Exception):
            raise outcome
        verdict: ReviewAnswer = outcome
        return verdict

    answer = await Reviews({"x": handle}, ManualClock()).answer("x", a_review())
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Object = answer["response"]
    assert response.pop("uid") == "u-1"
    return response


async def test_an_object_that_changes_is_answered_with_a_patch() -> None:
    changed = {**POD, "metadata": {"name": "web", "annotations": {"a/b": "2", "c~d": "3"}}, "status": {}}
    response = await respond(ReviewAnswer(changed, ("careful",)))
    operations = orjson.loads(base64.b64decode(response.pop("patch")))
    assert response == {"allowed": True, "patchType": "JSONPatch", "warnings": ["careful"]}
    assert apply_json_patch(POD, operations) == changed


async def test_an_object_that_stays_is_admitted_without_a_patch() -> None:
    assert await respond(ReviewAnswer()) == {"allowed": True}


async def test_an_api_error_denies_the_request() -> None:
    response = await respond(InternalError("no place"))
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["message"]) == (500, "no place")


async def test_any_other_error_admits_the_request() -> None:
    response = await respond(ClusterUnreachable("gone"))
    assert response["allowed"] is True
    assert "gone" in response["warnings"][0]


async def test_a_request_is_admitted_unchanged_after_the_deadline() -> None:
    clock = ManualClock()
    was_cancelled = asyncio.Event()

    async def hang(_: Object) -> ReviewAnswer:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            was_cancelled.set()
        return ReviewAnswer()

    answer = asyncio.ensure_future(Reviews({"x": hang}, clock).answer("x", a_review()))
    await clock.advance(0)
    await clock.advance(7.9)
    assert not answer.done()
    await clock.advance(0.2)
    response = (await answer)["response"]
    assert response["allowed"] is True
    assert "patch" not in response
    await was_cancelled.wait()


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"request": []}, {"request": {}}, {"request": {"uid": 1}}, {"request": {"uid": "u"}}],
)
async def test_a_body_that_is_no_review_is_refused(body: Any) -> None:
    with pytest.raises(BadRequest):
        await Reviews({}, ManualClock()).answer("x", body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_the_operations_turn_one_object_into_the_other(old: Object, new: Object) -> None:
    assert apply_json_patch(old, list(to_operations(old, new))) == new
