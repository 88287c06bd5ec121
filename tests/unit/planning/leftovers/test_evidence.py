"""Every deletion in a member needs a word about this copy that is newer than the user's last word about it."""

from itertools import product
from typing import Any

import pytest

from federation.api import names
from federation.planning.leftovers.evidence import Evidence, Membership, Word, membership_of, objection

BEFORE, CREATED, JOINED, AFTER = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3, 4))
MEMBER = Membership(CREATED, JOINED, "uid-a")
KEPT = "a user kept it"
OLD_COPY = "it was in the cluster before the cluster joined"
PLACED_BEFORE = "placed in other clusters before the cluster joined"
DELETED_BEFORE = "its source was deleted before the cluster joined"
ASKED_BEFORE = "its deletion was asked for before the cluster joined"
EARLIER = "it is older than the object of its name"
A_MINUTE_LATER = "2026-01-04T00:01:00Z"
OTHER = "the record is about another cluster"


@pytest.mark.parametrize("word", Word)
def test_a_cluster_that_is_no_member_and_a_copy_that_a_user_kept_lose_nothing(word: Word) -> None:
    best: dict[str, Any] = {"at": AFTER, "created": AFTER, "cluster_uid": "uid-a", "is_recorded": True}
    assert objection(Evidence(word, MEMBER, **best)) == ""
    assert objection(Evidence(word, None, **best)) == "the cluster is not a member"
    assert KEPT in objection(Evidence(word, MEMBER, **best, is_kept=True))


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        # A decision counts if the object recorded it in this membership.
        (Evidence(Word.PLACEMENT, MEMBER, is_recorded=True), ""),
        (Evidence(Word.PLACEMENT, MEMBER), "no decision since the cluster joined"),
        # A sweep needs a decision since the join, and a copy that came since then.
        (Evidence(Word.ELSEWHERE, MEMBER, at=AFTER, created=AFTER), ""),
        (Evidence(Word.ELSEWHERE, MEMBER, at=AFTER, created=CREATED), ""),
        (Evidence(Word.ELSEWHERE, MEMBER, at=JOINED, created=CREATED), PLACED_BEFORE),
        (Evidence(Word.ELSEWHERE, MEMBER, at=CREATED, created=AFTER), PLACED_BEFORE),
        (Evidence(Word.ELSEWHERE, MEMBER, at=BEFORE, created=AFTER), PLACED_BEFORE),
        (Evidence(Word.ELSEWHERE, MEMBER, at="", created=AFTER), PLACED_BEFORE),
        (Evidence(Word.ELSEWHERE, MEMBER, at="soon", created=AFTER), PLACED_BEFORE),
        (Evidence(Word.ELSEWHERE, Membership(CREATED), at=AFTER, created=AFTER), PLACED_BEFORE),
        (Evidence(Word.ELSEWHERE, MEMBER, at=AFTER, created=BEFORE), OLD_COPY),
        (Evidence(Word.ELSEWHERE, MEMBER, at=AFTER, created=JOINED, object_created=AFTER), EARLIER),
        (Evidence(Word.ELSEWHERE, MEMBER, at=AFTER, created=AFTER, object_created=A_MINUTE_LATER), ""),
        (Evidence(Word.ELSEWHERE, MEMBER, at=AFTER, created=AFTER, object_created="soon"), ""),
        (Evidence(Word.SOURCE, MEMBER, at=AFTER, created=JOINED, object_created=AFTER), EARLIER),
        # The deletion of a source.
        (Evidence(Word.SOURCE, MEMBER, at=AFTER), ""),
        (Evidence(Word.SOURCE, MEMBER, at=CREATED), ""),
        (Evidence(Word.SOURCE, MEMBER, at=BEFORE), DELETED_BEFORE),
        (Evidence(Word.SOURCE, MEMBER), DELETED_BEFORE),
        (Evidence(Word.SOURCE, Membership(), at=AFTER), DELETED_BEFORE),
        (Evidence(Word.SOURCE, MEMBER, at=AFTER, created=BEFORE), OLD_COPY),
        # A record is about one membership of a cluster.
        (Evidence(Word.RECORD, MEMBER, at=AFTER, cluster_uid="uid-a"), ""),
        (Evidence(Word.RECORD, MEMBER, at=BEFORE, cluster_uid="uid-a"), ASKED_BEFORE),
        (Evidence(Word.RECORD, MEMBER, cluster_uid="uid-a"), ASKED_BEFORE),
        (Evidence(Word.RECORD, MEMBER, at=AFTER, cluster_uid="uid-b"), OTHER),
        (Evidence(Word.RECORD, MEMBER, at=AFTER), ""),
        (Evidence(Word.RECORD, MEMBER, at=BEFORE), ASKED_BEFORE),
        (Evidence(Word.RECORD, Membership(CREATED, JOINED), at=BEFORE, cluster_uid="uid-a"), ASKED_BEFORE),
        (Evidence(Word.RECORD, Membership(), at=AFTER), ASKED_BEFORE),
        # An answer names the cluster, or the copy.
        (Evidence(Word.ANSWER, MEMBER), ""),
    ],
)
def test_a_word_counts_if_it_was_given_in_this_membership(evidence: Evidence, expected: str) -> None:
    found = objection(evidence)
    assert expected in found if expected else found == ""


WALK: dict[Word, dict[str, Evidence]] = {
    Word.PLACEMENT: {
        "newer": Evidence(Word.PLACEMENT, MEMBER, is_recorded=True),
        "older": Evidence(Word.PLACEMENT, MEMBER),  # a join removes what an earlier membership recorded
        "absent": Evidence(Word.PLACEMENT, MEMBER),
        "another": Evidence(Word.PLACEMENT, None, is_recorded=True),
    },
    Word.ANSWER: {  # an annotation of the FederatedCluster ends with it, so it is never older
        "newer": Evidence(Word.ANSWER, MEMBER),
        "another": Evidence(Word.ANSWER, None),
    },
    **{
        word: {
            "newer": Evidence(word, MEMBER, at=AFTER, created=AFTER, cluster_uid="uid-a"),
            "older": Evidence(word, MEMBER, at=BEFORE, created=AFTER, cluster_uid="uid-a"),
            "absent": Evidence(word, MEMBER, created=AFTER, cluster_uid="uid-a"),
            "another": Evidence(word, None, at=AFTER, created=AFTER, cluster_uid="uid-a"),
            "unknown": Evidence(word, Membership(), at=AFTER, created=AFTER, cluster_uid="uid-a"),
        }
        for word in (Word.ELSEWHERE, Word.SOURCE, Word.RECORD)
    },
}
"""Each word, given since the cluster joined, before, never, and about a cluster that is not a member or not known."""


@pytest.mark.parametrize("word", Word)
def test_of_each_word_only_the_newer_one_deletes(word: Word) -> None:
    assert {age for age, evidence in WALK[word].items() if not objection(evidence)} == {"newer"}


def test_knowing_less_never_allows_more() -> None:
    """Absence is no evidence: whatever is not known, no deletion becomes possible that was not."""
    times = ("", BEFORE, CREATED, JOINED, AFTER)
    for word, at, uid, is_recorded in product(Word, times, ("", "uid-a", "uid-b"), (False, True)):
        whole = Evidence(word, MEMBER, at=at, cluster_uid=uid, is_recorded=is_recorded)
        if not objection(whole):
            continue
        for less in (
            Evidence(word, Membership("", JOINED, "uid-a"), at=at, cluster_uid=uid, is_recorded=is_recorded),
            Evidence(word, Membership(CREATED, "", "uid-a"), at=at, cluster_uid=uid, is_recorded=is_recorded),
            Evidence(word, MEMBER, at="", cluster_uid=uid, is_recorded=is_recorded),
            Evidence(word, MEMBER, at=at, cluster_uid=uid),
        ):
            assert objection(less)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, Membership(CREATED)),
        ({"conditions": []}, Membership(CREATED)),
        ({"clusterUid": "uid-a"}, Membership(CREATED, "", "uid-a")),
        ({"clusterUid": "uid-a", "joined": "True"}, MEMBER),
        ({"clusterUid": "uid-a", "joined": "False"}, Membership(CREATED, "", "uid-a")),
    ],
)
def test_a_membership_begins_when_the_cluster_has_joined(status: dict[str, Any], expected: Membership) -> None:
    joined = status.pop("joined", None)
    if joined is not None:
        condition = {"type": names.CLUSTER_JOINED, "status": joined, "lastTransitionTime": JOINED}
        status = {**status, "conditions": [condition]}
    assert membership_of({"metadata": {"creationTimestamp": CREATED}, "status": status}) == expected
