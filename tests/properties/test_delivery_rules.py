"""What holds of every decision about one object in one cluster, whatever the facts."""

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.deliveryfacts import dimensions, facts

from federation.delivery.rules.decide import decide
from federation.delivery.rules.plan import Operation
from federation.delivery.rules.status import ClusterStatus

DIMENSIONS = dimensions()
VALUES = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in DIMENSIONS.items()})
REMOVALS = (Operation.DELETE, Operation.RELEASE)
UNWANTED = ("unplaced", "kept", "departing", "deleted", "released", "last look", "confirmed")
DELETED = ("deleted", "released", "last look", "confirmed")


@given(VALUES)
def test_there_are_never_two_operations_or_questions_on_one_object(values: dict[str, str]) -> None:
    decision = decide(facts(**values))
    assert decision.operation is None or values["flight"] == "idle"
    assert decision.operation is None or decision.question is None


@given(VALUES)
def test_nothing_is_removed_without_evidence_that_its_source_or_placement_is_gone(values: dict[str, str]) -> None:
    decision = decide(facts(**values))
    if decision.operation in REMOVALS:
        assert values["use"] in UNWANTED
        assert values["use"] != "kept", "only the deletion of its source removes it"
        assert values["obj"] in ("present", "scaled"), "it was seen, in a complete cache or in the answer to our write"
        assert values["cluster"] != "silent"
        assert values["use"] in DELETED or values["cluster"] not in ("leaving", "cascading")
    if decision.operation is Operation.RELEASE:
        assert values["use"] == "released"


@given(VALUES)
def test_only_what_should_be_there_is_written(values: dict[str, str]) -> None:
    decision = decide(facts(**values))
    if decision.operation in (Operation.CREATE, Operation.UPDATE):
        assert values["use"] in ("placed", "new", "created later", "finished", "departing")
        assert values["cluster"] in ("ready", "staying with cascade", "without finalizer")
        assert values["obj"] != "unknown"
        assert decision.write is not None
        assert (decision.operation is Operation.UPDATE) == (values["obj"] in ("present", "scaled", "going"))
        if values["use"] != "departing":
            assert values["host"] == "admitted"
            assert values["content"] in ("differs", "is a correction")


@given(VALUES)
def test_a_cluster_that_cannot_be_read_keeps_its_entry(values: dict[str, str]) -> None:
    if values["cluster"] == "silent" or values["obj"] == "unknown":
        decision = decide(facts(**values))
        assert decision.operation is None
        unread = (
            ClusterStatus.CLUSTER_NOT_READY,
            ClusterStatus.CACHED_RETRIEVAL_FAILED,
            ClusterStatus.KIND_NOT_SERVED,
        )
        assert decision.status in unread


@given(VALUES)
def test_whatever_waits_is_looked_at_again(values: dict[str, str]) -> None:
    """A failure, a pause, a verdict and a wait for followers have an end, and no event announces it."""
    decision = decide(facts(**values))
    rows = ("fought over", "followers", "write failed", "removal failed", "confirmation failed", "scaler unknown")
    if decision.row in rows:
        assert decision.recheck_after_s is not None
        assert decision.recheck_after_s > 0


def _neighbours(values: dict[str, str]) -> list[dict[str, str]]:
    return [{**values, name: other} for name, others in DIMENSIONS.items() for other in others if other != values[name]]


def test_every_status_can_be_reached_and_left() -> None:
    """One step away from each status is another one: a change of one fact leads on."""
    reached: dict[Any, set[Any]] = {}
    plain = {"record": "nothing", "content": "differs", "host": "admitted", "flight": "idle", "sight": "clear"}
    starts = [
        {**plain, "cluster": cluster, "use": use, "obj": obj}
        for cluster, use, obj in product(DIMENSIONS["cluster"], DIMENSIONS["use"], DIMENSIONS["obj"])
    ]
    for values in [*starts, *_neighbours({**plain, "cluster": "ready", "use": "placed", "obj": "present"})]:
        status = decide(facts(**values)).status
        reached.setdefault(status, set()).update(decide(facts(**other)).status for other in _neighbours(values))
    decided = {status for statuses in reached.values() for status in statuses} | reached.keys()
    of_operations = {
        # Results of operations, which are shown until the next attempt.
        ClusterStatus.CREATION_TIMED_OUT,
        ClusterStatus.DELETION_TIMED_OUT,
        ClusterStatus.LABEL_REMOVAL_TIMED_OUT,
        ClusterStatus.UPDATE_FAILED,
        ClusterStatus.DELETION_FAILED,
        ClusterStatus.LABEL_REMOVAL_FAILED,
        ClusterStatus.RETRIEVAL_FAILED,
        ClusterStatus.CLIENT_RETRIEVAL_FAILED,
        ClusterStatus.ALREADY_EXISTS,
        ClusterStatus.MANAGED_LABEL_FALSE,
        # Content and steps, which the facts here have one of each.
        ClusterStatus.FIELD_RETENTION_FAILED,
        ClusterStatus.COMPUTE_RESOURCE_FAILED,
    }
    assert set(ClusterStatus) - decided - {None} == of_operations
    for status, following in reached.items():
        assert following - {status}, status
