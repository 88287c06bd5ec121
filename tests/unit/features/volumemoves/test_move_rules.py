"""The steps of a move with volumes, what ends them, and what is made in members."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import orjson
import pytest
from msgspec import structs

from federation.apimachinery.resources import Object
from federation.features.volumemoves.movesteps import pair_of
from federation.features.volumemoves.names import VOLUME_MOVE
from federation.features.volumemoves.rules import objects
from federation.features.volumemoves.rules.choice import (
    choose_way,
    claims_to_move,
    old_problem,
    still_old,
    stopping_overrides,
    taken_names,
)
from federation.features.volumemoves.rules.moverecord import (
    BEFORE_SWITCH,
    RECORD,
    OldVolumes,
    Phase,
    VolumeMove,
    Way,
    Wish,
    read_wish,
)
from federation.features.volumemoves.rules.objects import CONTENTS, DESTINATIONS, SNAPSHOTS, SOURCES
from federation.features.volumemoves.rules.transitions import DONE, TABLE, Event, Outcome, advance, cleaned, fail
from federation.planning.guard.volumepermit import Word

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MOVE = VolumeMove("move-1", "east", "west", Phase.COPY, NOW, way="VolSync", claims={"data-db-0": "u0"})
BOTH = {each.group_kind for each in (SOURCES, DESTINATIONS, SNAPSHOTS, CONTENTS)}


def at(phase: Phase, **fields: Any) -> VolumeMove:
    return structs.replace(MOVE, phase=phase, **fields)


def test_every_step_before_the_switch_can_fail_and_none_after_it() -> None:
    for phase, event in product(Phase, Event):
        is_there = (phase, event) in TABLE
        if event is Event.FAILED:
            assert is_there is (phase in BEFORE_SWITCH), phase
        else:
            assert is_there is (phase not in (Phase.FAILED, Phase.KEPT)), phase
    assert {TABLE[phase, Event.FAILED] for phase in BEFORE_SWITCH} == {Phase.UNDO}


def test_a_move_goes_through_all_steps_in_order() -> None:
    move, seen = at(Phase.PREPARE), []
    while move.phase is not Phase.KEPT:
        seen.append(move.phase)
        move = advance(move, DONE, NOW, timeout_s=60)
    assert seen == [*(phase for phase in Phase if phase in BEFORE_SWITCH), Phase.SWITCHED]
    assert move.kept == (OldVolumes("east", {"data-db-0": "u0"}),)


def test_the_time_counts_from_when_the_workload_is_stopped() -> None:
    later = NOW + timedelta(hours=9)
    waiting = Outcome(message="west is not ready")
    assert advance(at(Phase.PREPARE), waiting, later, timeout_s=60).phase is Phase.PREPARE
    begun = advance(at(Phase.PREPARE), Outcome(is_done=True, way="Snapshot", claims={"a": "1"}), later, timeout_s=60)
    assert (begun.since, begun.way, begun.claims) == (later, "Snapshot", {"a": "1"})
    assert advance(begun, waiting, later + timedelta(seconds=60), timeout_s=60).phase is Phase.QUIESCE
    undone = advance(begun, waiting, later + timedelta(seconds=61), timeout_s=60)
    assert (undone.phase, undone.message) == (Phase.UNDO, "Quiesce was not done after 60 s: west is not ready")


@pytest.mark.parametrize("phase", [Phase.SWITCHED, Phase.UNDO])
def test_after_the_switch_and_while_it_is_undone_a_move_waits_without_end(phase: Phase) -> None:
    assert advance(at(phase), Outcome(message="no"), NOW + timedelta(days=9), timeout_s=60).phase is phase


def test_the_reason_of_a_failure_stays_while_and_after_it_is_undone() -> None:
    undone = fail(MOVE, "the disk is full")
    undone = advance(undone, Outcome(message="east does not answer"), NOW, timeout_s=60)
    undone = advance(undone, DONE, NOW, timeout_s=60)
    assert (undone.phase, undone.message) == (Phase.FAILED, "the disk is full")
    unclean = advance(fail(MOVE, "x"), Outcome(is_done=True, is_unclean=True), NOW, timeout_s=60)
    assert (unclean.phase, unclean.is_unclean, unclean.message) == (Phase.FAILED, True, "x")
    assert not cleaned(unclean).is_unclean
    gone = advance(MOVE, Outcome(message="claim data-db-0 in east is gone", is_impossible=True), NOW, timeout_s=60)
    assert gone.phase is Phase.UNDO


def test_what_an_earlier_move_left_in_the_same_cluster_is_replaced() -> None:
    kept = (OldVolumes("east", {"data-db-0": "old"}), OldVolumes("north", {"data-db-0": "n"}))
    after = advance(at(Phase.SWITCHED, kept=kept), DONE, NOW, timeout_s=60)
    assert after.kept == (kept[1], OldVolumes("east", {"data-db-0": "u0"}))
    assert advance(at(Phase.SWITCHED, claims={}), DONE, NOW, timeout_s=60).kept == ()


def test_a_record_is_read_as_it_was_written() -> None:
    text = RECORD.text(MOVE)
    assert RECORD.of({"metadata": {"annotations": {VOLUME_MOVE: text}}}) == MOVE
    assert RECORD.of({"metadata": {"annotations": {VOLUME_MOVE: "{}"}}}) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yes", "give JSON such as {}"),
        ("[]", "Expected `object`"),
        ('{"metod": "VolSync"}', "unknown field `metod`"),
        ('{"method": "Velero"}', "method"),
        ('{"quiesceURL": "http://db"}', "quiesceURL"),
        ('{"timeoutSeconds": 5}', "timeoutSeconds"),
    ],
)
def test_a_wrong_wish_names_the_field(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"annotation .*move-volumes") as error:
        read_wish(text)
    assert message in str(error.value)


def test_a_wish_may_say_nothing() -> None:
    assert read_wish("{}") == Wish()
    assert read_wish('{"quiesceURL": "https://db/q", "requested": "1"}').quiesce_url == "https://db/q"


def test_the_way_is_one_that_both_clusters_have() -> None:
    snapshots = {SNAPSHOTS.group_kind, CONTENTS.group_kind}
    assert choose_way(Wish(), "east", BOTH, "west", BOTH) == (Way.VOLSYNC, "")
    assert choose_way(Wish(method="Snapshot"), "east", BOTH, "west", BOTH) == (Way.SNAPSHOT, "")
    assert choose_way(Wish(), "east", BOTH, "west", snapshots) == (Way.SNAPSHOT, "")
    way, problem = choose_way(Wish(method="VolSync"), "east", BOTH, "west", snapshots)
    assert not way
    assert problem.endswith("(VolSync: west does not serve ReplicationDestination.volsync.backube)")


def a_claim(name: str, **spec: Any) -> Object:
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"u-{name}",
        "labels": {"app": "db", "kubeadmiral.io/managed": "true"},
    }
    requests = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": f"pv-{name}",
    }
    return {"metadata": metadata, "spec": {**requests, **spec}, "status": {"capacity": {"storage": "2Gi"}}}


def a_template(**spec: Any) -> Object:
    templates = [{"metadata": {"name": "data"}}, {"metadata": {"name": "log"}}]
    return {"kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"volumeClaimTemplates": templates, **spec}}


def test_the_claims_of_the_templates_move_and_no_others() -> None:
    claims = [
        a_claim(name)
        for name in ("data-db-10", "data-db-2", "log-db-0", "data-db-x", "data-db-01", "data-db2-0", "other")
    ]
    found, problem = claims_to_move(a_template(), claims)
    assert [claim["metadata"]["name"] for claim in found] == ["data-db-10", "data-db-2", "log-db-0"]
    assert not problem
    found, problem = claims_to_move(a_template(), [*claims, a_claim("data-db-3", volumeName="")])
    assert (found, problem) == ([], "claim data-db-3 has no volume, or is being deleted")


def test_a_claim_of_the_target_that_the_move_did_not_make_is_in_the_way() -> None:
    made = a_claim("data-db-0")
    made["metadata"]["annotations"] = {VOLUME_MOVE: "move-1"}
    wanted = ["data-db-0", "data-db-1"]
    assert taken_names([made, a_claim("data-db-1"), a_claim("x")], wanted, "move-1") == ["data-db-1"]
    assert taken_names([made], wanted, "move-2") == ["data-db-0"]


def test_a_workload_goes_back_only_to_volumes_that_an_earlier_move_left() -> None:
    kept = (OldVolumes("west", {"data-db-0": "u-data-db-0"}), OldVolumes("north", {"data-db-0": "n"}))
    back = at(Phase.PREPARE, kept=kept)
    assert old_problem(back, [a_claim("data-db-0"), a_claim("other")]) == ""
    assert old_problem(back, [a_claim("other")]) == "west does not have the old claims data-db-0 any more"
    assert old_problem(MOVE, [a_claim("data-db-0")]) == "no earlier move left volumes of it in west"
    assert still_old(back, frozenset({"west"})) == kept[1:]
    after = advance(at(Phase.SWITCHED, kept=kept), DONE, NOW, timeout_s=60)
    assert after.kept == (kept[1], OldVolumes("east", {"data-db-0": "u0"}))


@pytest.mark.parametrize("phase", Phase)
def test_the_workload_is_stopped_from_quiesce_until_it_runs_elsewhere(phase: Phase) -> None:
    path, deletes = ("spec", "replicas"), {"whenDeleted": "Delete", "whenScaled": "Delete"}
    template = a_template(persistentVolumeClaimRetentionPolicy=deletes)
    stopped = {Phase.QUIESCE, Phase.COPY, Phase.STOP, Phase.VERIFY, Phase.READY, Phase.SWITCHED}
    found = stopping_overrides(at(phase), Wish(), path, template)
    kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    patches = [
        {"op": "replace", "path": "/spec/replicas", "value": 0},
        {"op": "replace", "path": "/spec/persistentVolumeClaimRetentionPolicy", "value": kept},
    ]
    assert found == ({"east": patches} if phase in stopped else {})
    hooked = stopping_overrides(at(phase), Wish(quiesce_url="https://db/q"), path, a_template())
    assert hooked == ({"east": patches[:1]} if phase in stopped - {Phase.QUIESCE, Phase.COPY} else {})


def test_a_copy_is_as_large_as_the_volume_and_has_the_class_of_the_target() -> None:
    claim = a_claim("data-db-0", storageClassName="fast", volumeMode="Filesystem")
    body = objects.claim_like(claim, "move-1", Wish(storage_classes={"fast": "gp3"}), snapshot="s")
    assert body["metadata"] == {
        "name": "data-db-0", "namespace": "shop", "labels": {"app": "db"}, "annotations": {VOLUME_MOVE: "move-1"}
    }  # fmt: skip
    assert body["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        "volumeMode": "Filesystem",
        "storageClassName": "gp3",
        "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
    }
    assert "dataSource" not in objects.claim_like(a_claim("a"), "move-1", Wish())["spec"]


def test_the_content_in_the_target_names_the_snapshot_of_the_source_and_does_not_delete_it() -> None:
    content = {"spec": {"driver": "d", "sourceVolumeMode": "Block"}, "status": {"snapshotHandle": "h"}}
    body = objects.content_of_handle("move-1", "shop", "data-db-0", content)
    assert body["metadata"]["name"] == "move-1-shop-data-db-0"
    assert body["spec"] == {
        "deletionPolicy": "Retain",
        "driver": "d",
        "source": {"snapshotHandle": "h"},
        "sourceVolumeMode": "Block",
        "volumeSnapshotRef": {
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "namespace": "shop", "name": "move-1-data-db-0"
        },
    }  # fmt: skip


def test_one_synchronization_is_asked_for_and_only_its_end_counts() -> None:
    body = objects.source_of("move-1", "shop", "data-db-0", "10.0.0.1", 8000)
    assert body["spec"]["trigger"] == {"manual": "move-1"}
    assert body["spec"]["rsyncTLS"]["port"] == 8000
    successful = {"lastManualSync": "move-1", "latestMoverStatus": {"result": "Successful"}}
    assert objects.is_synced({"status": successful}, "move-1")
    for wrong in ({**successful, "lastManualSync": "move-0"}, {"lastManualSync": "move-1"}, {}):
        assert not objects.is_synced({"status": wrong}, "move-1")
    assert not objects.is_synced(None, "move-1")


def test_names_fit_whatever_the_claim_is_called() -> None:
    assert len(objects.name_of("move-1", "a" * 253)) == 253
    assert not objects.name_of("move-1", "a" * 245 + "-" * 20).endswith("-")


PAIRS: list[tuple[dict[str, int | None], dict[str, int | None], tuple[str, str]]] = [
    ({"east": 3}, {"west": 3}, ("east", "west")),
    ({"east": None}, {"west": None}, ("east", "west")),
    ({"east": 2, "north": 1}, {"west": 2, "north": 1}, ("east", "west")),
    ({"east": 3}, {"west": 2, "north": 1}, ("", "")),
    ({"east": 2, "north": 1}, {"west": 3}, ("", "")),
    ({"east": 2, "north": 1}, {"north": 3}, ("", "")),
    ({"east": 3, "north": 1}, {"east": 2, "north": 2}, ("", "")),
]


@pytest.mark.parametrize(("before", "after", "pair"), PAIRS)
def test_volumes_move_from_one_cluster_to_one_other(
    before: dict[str, int | None], after: dict[str, int | None], pair: tuple[str, str]
) -> None:
    source, target, problem = pair_of(before, after, {"east": Word.ANNOTATION})
    assert (source, target) == pair
    assert bool(problem) is (pair == ("", ""))
    assert orjson.dumps(problem)
