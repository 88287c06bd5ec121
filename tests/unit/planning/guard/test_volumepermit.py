"""The rule about volumes: every way out of a cluster waits for a word, whoever causes it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.guard.volumepermit import FREE, Departure, Way, Word, permit_volumes
from federation.scheduling.triggerwords import TRIGGERS_IN_WORDS

CLAIMS = "the claims of its volumeClaimTemplates"
MOVE = Departure(CLAIMS, {"east": 1, "north": 1}, {"east": 1, "west": 1}, wanted=2)
SHIFT = Departure(CLAIMS, {"east": 3, "west": 1}, {"east": 2, "west": 2}, wanted=4)
COPY = Departure(CLAIMS, {"east": None, "north": None}, {"east": None}, wanted=2)
DIVIDED = Departure(CLAIMS, {"east": None, "north": None}, {"east": 1, "north": 1}, wanted=2)
NORTH = frozenset({"north"})
ANNOTATED = frozenset({"schedulingAnnotationsHash"})

WAYS = [
    ("a policy", {"policyContentHash"}, {}, Way.POLICY),
    ("another policy", {"policyName"}, {}, Way.POLICY),
    ("a profile", {"profileHash"}, {}, Way.PROFILE),
    ("a label", {"clusterLabelsHashes"}, {}, Way.LABELS),
    ("a taint of an administrator", {"clusterTaintsHashes"}, {}, Way.TAINTS),
    ("the end of a toleration", {"tolerationsEnded"}, {}, Way.TAINTS),
    ("a cluster that joined", {"clusters"}, {}, Way.CLUSTERS),
    ("a kind that is not served any more", {"clusterAPIResourceTypesHashes"}, {}, Way.CLUSTERS),
    ("auto-migration", {"autoMigrationInfo"}, {}, Way.MIGRATION),
    ("preemption", {"schedulingAnnotationsHash", "controlAnnotationsHash"}, {}, Way.PRIORITY),
    ("affinity", {"partnersAway"}, {}, Way.PARTNERS),
    ("a WorkloadSpread", {"workloadSpreadHash"}, {}, Way.SPREAD),
    ("larger requests", {"resourceRequest"}, {}, Way.SIZE),
    ("an autoscaler beside something else", {"replicaCount", "policyContentHash"}, {}, Way.POLICY),
    ("nothing that is known", set(), {}, Way.UNKNOWN),
    ("a project", {"clustersLeft"}, {"outside": NORTH}, Way.PROJECT),
    ("an unjoin", {"clusters"}, {"departed": NORTH}, Way.MEMBERSHIP),
    ("an unhealthy workload", {"clustersAvoided"}, {"unhealthy": NORTH}, Way.APPLICATION),
    ("a tainted cluster that a policy had excluded before", {"policyContentHash", "tolerationsEnded"},
     {"evicting": NORTH, "held": NORTH}, Way.POLICY),
    ("a lost cluster outside the project", {"clustersLeft"}, {"outside": NORTH, "evicting": NORTH}, Way.PROJECT),
    ("a lost cluster that leaves", {"clusters"}, {"departed": NORTH, "evicting": NORTH}, Way.MEMBERSHIP),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changed", "more", "way"), WAYS, ids=[entry[0] for entry in WAYS])
@pytest.mark.parametrize("has_claims", [True, False], ids=["claims", "no claims"])
def test_each_way_out_of_a_cluster_waits_if_volumes_would_stay_behind(
    has_claims: bool, name: str, changed: set[str], more: dict[str, frozenset[str]], way: Way
) -> None:
    facts = replace(MOVE, volumes=CLAIMS if has_claims else "", changed=frozenset(changed), **more)
    found = permit_volumes(facts)
    assert dict(found.waits) == ({"north": way} if has_claims else {}), name
    assert not found.goes
    approved = permit_volumes(replace(facts, approved=NORTH))
    assert not approved.waits
    assert approved.approved == (NORTH if has_claims else frozenset())


def test_each_trigger_of_a_decision_has_a_way() -> None:
    own = {"ignoredPlugins", "pluginFieldsHash", "schedulingAnnotationsHash"}
    for trigger in TRIGGERS_IN_WORDS.keys() - own:
        waits = permit_volumes(replace(MOVE, changed=frozenset({trigger}))).waits
        assert waits["north"] is not Way.UNKNOWN, trigger


@pytest.mark.parametrize(
    "facts", [SHIFT, COPY, DIVIDED], ids=["a shift", "a copy that goes", "copies that are divided"]
)
def test_a_part_of_the_replicas_and_a_copy_wait_too(facts: Departure) -> None:
    assert permit_volumes(replace(facts, changed=frozenset({"policyContentHash"}))).waits


WORDS = [
    ("the annotation of a user", {"changed": ANNOTATED}, Word.ANNOTATION),
    ("failover of a lost cluster", {"fails_over": True, "evicting": NORTH}, Word.FAILOVER),
    ("failover of an unhealthy workload", {"fails_over": True, "unhealthy": NORTH}, Word.FAILOVER),
    ("a return", {"homes": frozenset({"west"})}, Word.RETURN),
    ("scaling", {"wanted": 1, "after": {"east": 1}}, Word.SCALING),
    ("scaling to nothing", {"wanted": 0, "after": {"east": 0}}, Word.SCALING),
]


@pytest.mark.parametrize(("name", "more", "word"), WORDS, ids=[entry[0] for entry in WORDS])
def test_the_word_of_somebody_who_may_say_it_lets_a_move_go_on(name: str, more: dict[str, object], word: Word) -> None:
    found = permit_volumes(replace(MOVE, **more))  # type: ignore[arg-type]  # fields of different types
    assert not found.waits, name
    assert found.goes["north"] is word


NO_WORDS = [
    ("more replicas elsewhere", {"wanted": 3, "after": {"east": 1, "west": 2}}),
    ("fewer replicas, of which some move", {"wanted": 1, "after": {"west": 1}}),
    ("replicas that have no room", {"wanted": 2, "after": {"east": 1}}),
    ("failover of a cluster that is not lost", {"fails_over": True}),
    ("failover of a lost cluster that leaves", {"fails_over": True, "evicting": NORTH, "departed": NORTH}),
    ("a return to another cluster", {"homes": frozenset({"south"})}),
    ("a return from outside the project", {"homes": frozenset({"west"}), "outside": NORTH}),
    ("an annotation of the control plane", {"changed": ANNOTATED | {"controlAnnotationsHash"}}),
]


@pytest.mark.parametrize(("name", "more"), NO_WORDS, ids=[entry[0] for entry in NO_WORDS])
def test_what_is_no_word_about_these_replicas_lets_nothing_go_on(name: str, more: dict[str, object]) -> None:
    found = permit_volumes(replace(MOVE, **more))  # type: ignore[arg-type]  # fields of different types
    assert "north" in found.waits, name
    assert not found.goes


@pytest.mark.parametrize("changed", [{"tolerationsEnded"}, {"clusterTaintsHashes"}, set()])
@pytest.mark.parametrize("held", [NORTH, frozenset()])
def test_what_stays_in_a_lost_cluster_by_the_rules_of_failover_is_not_held(
    changed: set[str], held: frozenset[str]
) -> None:
    found = permit_volumes(replace(MOVE, changed=frozenset(changed), evicting=NORTH, held=held))
    assert not found.waits
    assert found.stays == NORTH
    assert not found.goes


def test_a_drained_cluster_whose_volumes_can_be_copied_waits_for_an_approval() -> None:
    facts = replace(MOVE, changed=frozenset({"clusterTaintsHashes"}), evicting=NORTH, copied=NORTH)
    assert permit_volumes(facts).waits == {"north": Way.LOSS}
    assert permit_volumes(replace(facts, approved=NORTH)).goes == {"north": Word.APPROVAL}
    assert permit_volumes(replace(facts, fails_over=True)).goes == {"north": Word.FAILOVER}


COUNTS = st.dictionaries(st.sampled_from(["east", "north", "west"]), st.none() | st.integers(0, 4))
SOME = st.frozensets(st.sampled_from(["east", "north", "west"]))


@given(before=COUNTS, after=COUNTS, outside=SOME, departed=SOME, evicting=SOME, unhealthy=SOME, held=SOME)
def test_a_cluster_that_loses_volumes_is_in_exactly_one_answer_and_no_other_is_in_any(
    before: dict[str, int | None],
    after: dict[str, int | None],
    outside: frozenset[str],
    departed: frozenset[str],
    evicting: frozenset[str],
    unhealthy: frozenset[str],
    held: frozenset[str],
) -> None:
    facts = Departure(
        CLAIMS, before, after, 2, outside=outside, departed=departed, evicting=evicting, unhealthy=unhealthy, held=held
    )
    found = permit_volumes(facts)
    answers = [*found.waits, *found.stays, *found.goes]
    losing = {name for name, count in before.items() if (2 if count is None else count) > _count(after.get(name, 0))}
    assert sorted(answers) == sorted(losing)
    assert permit_volumes(replace(facts, volumes="")) is FREE


def _count(replicas: int | None) -> int:
    return 2 if replicas is None else replicas


START = Departure(CLAIMS, {"east": 2}, {}, is_start=True)
STARTS = [
    ("where its volumes are", {"east": 2}, {"east": 2}, {}),
    ("with more replicas than volumes", {"east": 2}, {"east": 2, "west": 3}, {}),
    ("with fewer replicas than volumes", {"east": 3, "west": 3}, {"east": 2}, {}),
    ("as a copy beside its volumes", {"east": 2, "north": 2}, {"east": None}, {}),
    ("as copies, more than volumes", {"east": 2}, {"east": None, "west": None}, {}),
    ("elsewhere", {"east": 2}, {"west": 2}, {"east"}),
    ("elsewhere as a copy", {"east": 2}, {"west": None}, {"east"}),
    ("partly elsewhere", {"east": 2}, {"east": 1, "west": 1}, {"east"}),
    ("all in one of two clusters", {"east": 3, "north": 1}, {"east": 4}, {"north"}),
    ("on a volume for any number", {"east": None}, {"east": 4}, {}),
    ("beside a volume for any number", {"east": None}, {"east": 2, "west": 2}, {}),
    ("elsewhere than a volume for any number", {"east": None}, {"west": 4}, {"east"}),
    ("with no replica", {"east": 2}, {"west": 0}, {}),
    ("with no replica where they are", {"east": 2}, {"east": 0, "west": 2}, {"east"}),
]


@pytest.mark.parametrize(("name", "found", "after", "waits"), STARTS, ids=[entry[0] for entry in STARTS])
def test_an_object_without_a_place_starts_empty_only_if_no_volumes_stay_unused(
    name: str, found: dict[str, int | None], after: dict[str, int | None], waits: set[str]
) -> None:
    facts = replace(START, before=found, after=after)
    assert dict(permit_volumes(facts).waits) == dict.fromkeys(waits, Way.START), name
    approved = permit_volumes(replace(facts, approved=frozenset(found)))
    assert not approved.waits
    assert approved.approved == set(waits)


def test_replicas_without_a_place_would_start_empty_later() -> None:
    facts = replace(START, before={"east": 2, "west": 1}, after={"east": 2}, wanted=3)
    assert dict(permit_volumes(facts).waits) == {"west": Way.START}
    assert permit_volumes(replace(facts, wanted=2)) is FREE, "the user wants fewer replicas"
    assert permit_volumes(replace(facts, before={"east": 2})).waits == {}, "all volumes are used"


def test_one_of_two_clusters_of_unknown_ordinals_may_lack_the_volumes_of_the_other() -> None:
    unknown = frozenset({"east", "north"})
    facts = replace(START, before={"east": None, "north": None, "west": 1}, clashing=unknown, wanted=4)
    assert dict(permit_volumes(replace(facts, after={"east": 3, "west": 1})).waits) == {"north": Way.START}
    assert permit_volumes(replace(facts, after={"east": 1, "north": 2, "west": 1})).waits == {}


def test_no_word_in_advance_lets_an_object_without_a_place_start_empty() -> None:
    east = frozenset({"east"})
    said = replace(
        START, after={"west": 1}, wanted=1, fails_over=True, evicting=east, unhealthy=east, changed=ANNOTATED
    )
    assert dict(permit_volumes(said).waits) == {"east": Way.START}


def test_shares_cannot_use_volumes_with_the_names_of_others() -> None:
    """Copies had the same ordinals in both clusters; one of them gets others when they are divided."""
    facts = replace(START, before={"east": 2, "north": 2}, clashing=frozenset({"north"}))
    assert set(permit_volumes(replace(facts, after={"east": 1, "north": 1})).waits) == {"east", "north"}
    assert permit_volumes(replace(facts, after={"east": 2})) == FREE
    assert permit_volumes(replace(facts, after={"east": None, "north": None})) == FREE
