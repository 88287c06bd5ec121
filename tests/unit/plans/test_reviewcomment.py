"""The comment of a review says what matters first, stays within its limit, and shows text of others as text."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.plans.review import Objection, Review, to_json_document
from federation.plans.reviewcomment import LENGTH_MAX, MARKER, to_comment
from federation.scheduling.whatif.planresult import (
    Action,
    Cost,
    MemberObject,
    MemberPlan,
    ObjectPlan,
    Plan,
    PlannedHold,
)

PARSER = MarkdownIt("commonmark").enable("table")
HOSTILE = "a`|</td><img src=x onerror=alert(1)>\n\n# [x](http://evil.example) @all"


def copy(replicas: int | None, text: str = "a") -> MemberObject:
    return MemberObject({"data": {"password": "secret"}}, text, text, replicas)


def row(cluster: str, before: int | None, after: int | None) -> MemberPlan:
    sides = (None if count is None else copy(count, str(count)) for count in (before, after))
    return MemberPlan(cluster, *sides)


def an_object(name: str = "web", rows: Any = (), **more: Any) -> ObjectPlan:
    rows = rows or [row("east", 2, 4), row("west", 4, 2)]
    return ObjectPlan(DEPLOYMENTS, "shop", name, Action.CHANGE, rows, **{"federated_name": f"{name}-x", **more})


def comment(*objects: ObjectPlan, **more: Any) -> str:
    return to_comment(Review("abc", Plan(list(objects), examined=len(objects)), **more))


def test_totals_come_first_and_every_object_has_a_row() -> None:
    cost = {"price": Cost(1.0, 1.5, ("west",)), "carbon": Cost(1_000, 500)}
    waves = [("canary", ["east"]), ("remaining", ["west"])]
    found = comment(an_object(lost=1, costs=cost, waves=waves, approvals=["remaining"], reason="2/2 clusters"))
    assert found.splitlines()[0] == MARKER
    assert "**Passes.** It needs approvals." in found
    assert "| replicas | 2 move |" in found
    assert "| missing at worst | 1 of 6 replicas |" in found
    assert "| price per month | 730.00 → 1,095.00 (+365.00); not known for `west` |" in found
    assert "| emissions per month | 730.00 → 365.00 kg CO2e (-365.00) |" in found
    assert "| `deployment/web` in `shop` | rescheduled | `east` 2 → 4, `west` 4 → 2 | 1 of 6 |" in found
    assert "waves: `canary` (`east`) then `remaining` after an approval (`west`)" in found
    assert "`wave remaining: fedctl rollout approve deployment/web -n shop`" in found
    assert "secret" not in found


HOLD = PlannedHold("PropagationPolicy shop/p", [("shop", "web-x")], counted=30, size=40, allowed=10)


@pytest.mark.parametrize(
    ("plan", "objection", "says"),
    [
        (Plan([an_object()], holds=[HOLD]), Objection.HELD, "30 of its 40 objects would move within its window"),
        (Plan([an_object(is_stuck=True, reason="no room")]), Objection.STUCK, "cannot be scheduled: no room"),
        (Plan([an_object(unplaced=3, unplaced_before=1)]), Objection.UNPLACED, "3 replicas without room"),
        (Plan([an_object(lost=3)]), Objection.LOST, "3 replicas may be missing at worst, more than 2"),
    ],
    ids=lambda value: str(value) if isinstance(value, Objection) else "",
)
def test_what_speaks_against_a_change_fails_it_unless_it_is_allowed(
    plan: Plan, objection: Objection, says: str
) -> None:
    found = Review("abc", plan, lost_max=2)
    assert not found.is_passed
    assert says in to_comment(found)
    assert "**Does not pass.**" in to_comment(found)
    allowed = Review("abc", plan, allowed=[objection.value], lost_max=2)
    assert allowed.is_passed
    assert f"{objection} (allowed)" in to_comment(allowed)
    assert [each["reason"] for each in to_json_document(allowed)["objections"]] == [objection]


def test_replicas_that_lack_a_cluster_already_are_no_objection() -> None:
    assert Review("", Plan([an_object(unplaced=2, unplaced_before=2)])).is_passed
    assert Review("", Plan([an_object(lost=9)])).is_passed


def test_a_refused_change_has_no_plan() -> None:
    found = Review("abc", None, refused="a.yaml: spec.replicas: Invalid value")
    assert not found.is_passed
    assert "spec.replicas" in to_comment(found)
    assert to_json_document(found)["passed"] is False


@pytest.mark.parametrize("length_max", [2_000, LENGTH_MAX])
def test_a_large_change_stays_within_the_limit(length_max: int) -> None:
    rows = [row(f"cluster-{number:03}", 1, 2) for number in range(100)]
    objects = [an_object(f"web-{number}", rows, reason="x" * 2_000) for number in range(2_000)]
    plan = Plan(objects, examined=2_000, problems=["y" * 900] * 500, holds=[HOLD] * 500)
    found = to_comment(Review("abc", plan, notes=["z" * 900] * 500), length_max)
    assert len(found) <= length_max
    assert "**Does not pass.**" in found
    assert re.search(r"and \d+ (more|objects more)", found)


def test_the_worst_objects_come_first() -> None:
    found = comment(an_object("a"), an_object("b", lost=2), an_object("c", is_stuck=True))
    places = [found.index(f"| `deployment/{name}`") for name in ("c", "b", "a")]
    assert places == sorted(places)


def kinds(tokens: Any) -> set[str]:
    found = set()
    for token in tokens or ():
        found |= {token.type} | kinds(token.children)
    return found


@given(st.text(max_size=60) | st.just(HOSTILE))
def test_text_of_others_changes_nothing_about_the_comment(text: str) -> None:
    hostile = an_object(
        text,
        [MemberPlan(text, copy(1), MemberObject({}, "", "", error=text or "x"))],
        reason=text,
        problems=[text],
        waves=[(text, [text])],
        approvals=[text],
        costs={"price": Cost(1, 2, (text,))},
    )
    unchanged = ObjectPlan(PROPAGATION_POLICIES, text, text, Action.NONE, reason=text)
    hold = PlannedHold(text, [("shop", f"{text}-x")], volumes=text)
    plan = Plan([hostile, unchanged], problems=[text], holds=[hold])
    found = to_comment(Review(text, plan, refused=text, notes=[text]))
    tokens = PARSER.parse(found)
    assert [token.content.strip() for token in tokens if token.type == "html_block"] == [MARKER]
    assert not kinds(tokens) & {"html_inline", "link_open", "image", "fence", "code_block", "hr"}
    assert sum(token.type == "heading_open" for token in tokens) == 1
    rows_of = [token for token in tokens if token.type == "tr_open"]
    assert len(rows_of) == 1 + 5 + 1 + 1  # the totals with an empty head, and one object
