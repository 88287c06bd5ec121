"""Claims of an object's name say where its volumes are, and which ordinals find them."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.guard.earliervolumes import (
    NO_VOLUMES,
    ClaimNames,
    ClusterClaims,
    claim_names_of,
    describe_start,
    find_volumes,
    has_data,
    note_of,
    ordinals_of,
    stems_of,
)


def a_template(kind: str = "StatefulSet", group: str = "apps/v1", **spec: Any) -> Object:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "db"}, "spec": spec}


def a_federated(start: int | None = None, **annotations: str) -> Object:
    spec = {} if start is None else {"ordinals": {"start": start}}
    return {"metadata": {"annotations": annotations}, "spec": {"template": a_template(**spec)}}


def a_claim(name: str, *, volume: str = "pv", **metadata: str) -> Object:
    spec = {"volumeName": volume} if volume else {}
    return {"metadata": {"name": name, "namespace": "shop", **metadata}, "spec": spec}


def of(*ordinals: int) -> ClusterClaims:
    return ClusterClaims(frozenset(ordinals))


TEMPLATES = [{"metadata": {"name": "data"}}, {"metadata": {"name": "logs"}}, {"metadata": {}}]
POD = {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "disk"}}]}}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (a_template(volumeClaimTemplates=TEMPLATES), ClaimNames(("data-db", "logs-db"))),
        (
            a_template(group="apps.kruise.io/v1beta1", volumeClaimTemplates=TEMPLATES),
            ClaimNames(("data-db", "logs-db")),
        ),
        (a_template("CloneSet", "apps.kruise.io/v1alpha1", volumeClaimTemplates=TEMPLATES), ClaimNames()),
        (a_template(volumeClaimTemplates=TEMPLATES, template=POD), ClaimNames(("data-db", "logs-db"), ("disk",))),
        (a_template("Deployment", template=POD), ClaimNames((), ("disk",))),
        (a_template("Deployment"), ClaimNames()),
    ],
)
def test_names_of_claims_are_those_of_kubernetes(template: Object, expected: ClaimNames) -> None:
    assert claim_names_of(template, lambda _: ("ReadWriteOnce",)) == expected


def test_a_claim_that_many_nodes_mount_counts_for_nothing() -> None:
    assert claim_names_of(a_template("Deployment", template=POD), lambda _: ("ReadWriteMany",)) == ClaimNames()


def test_claims_without_a_volume_or_that_are_deleted_have_no_data() -> None:
    assert has_data(a_claim("data-db-0"))
    assert not has_data(a_claim("data-db-0", volume=""))
    assert not has_data(a_claim("data-db-0", deletionTimestamp="2026-01-01T00:00:00Z"))
    found = ordinals_of([a_claim("data-db-0"), a_claim("data-db-12"), a_claim("data-db-3", volume=""), a_claim("x")])
    assert found == {0, 12}


@pytest.mark.parametrize(
    ("name", "stems"),
    [("data-db-0", ("shop/data-db",)), ("data-db-01", ()), ("data", ()), ("data-db-1-10", ("shop/data-db-1",))],
)
def test_the_stem_of_a_claim_lacks_its_ordinal(name: str, stems: tuple[str, ...]) -> None:
    assert stems_of(a_claim(name)) == stems


def test_each_cluster_has_as_many_replicas_as_ordinals_and_its_start() -> None:
    found = find_volumes(a_federated(), {"west": of(1000, 1003), "north": of(0, 1, 2), "east": of()})
    assert found.counts == {"north": 3, "west": 2}
    assert orjson.loads(found.starts) == {"north": 0, "west": 1000}
    assert found.matter
    assert not found.clashing


def test_the_start_is_relative_to_that_of_the_template() -> None:
    found = find_volumes(a_federated(start=5), {"west": of(1005), "north": of(5)})
    assert orjson.loads(found.starts) == {"north": 0, "west": 1000}


def test_copies_with_the_same_ordinals_clash_and_the_one_with_most_keeps_them() -> None:
    found = find_volumes(a_federated(), {"east": of(0, 1), "north": of(0, 1, 2), "west": of(0)})
    assert found.counts == {"east": 2, "north": 3, "west": 1}
    assert found.clashing == {"east", "west"}
    assert orjson.loads(found.starts) == {"north": 0}


def test_claims_win_over_the_record_and_a_record_of_others_stays() -> None:
    recorded = '{"east":2000,"north":1000,"south":0,"west":3000}'
    federated = a_federated(**{names.ORDINAL_STARTS: recorded})
    found = find_volumes(federated, {"north": of(0), "east": of()})
    assert orjson.loads(found.starts) == {"north": 0, "west": 3000}


def test_what_is_only_recorded_counts_for_any_number_and_is_not_unknown() -> None:
    found = find_volumes(
        a_federated(), {"north": ClusterClaims(has_plain=True)}, recorded=["east"], unknown={"east", "west"}
    )
    assert found.counts == {"east": None, "north": None}
    assert found.unknown == {"west"}
    assert found.starts == ""


@pytest.mark.parametrize(
    ("replicas", "recorded", "expected"),
    [
        (3, ["north"], {"north": 1, "west": 2}),
        (2, ["north"], {"north": 0, "west": 2}),
        (None, ["north"], {"north": None, "west": 2}),
        (6, ["north", "east"], {"east": None, "north": None, "west": 2}),
    ],
)
def test_a_single_cluster_that_does_not_answer_has_the_volumes_that_the_others_lack(
    replicas: int | None, recorded: list[str], expected: dict[str, int | None]
) -> None:
    sizes = {} if replicas is None else {"replicas": replicas}
    template = a_template(volumeClaimTemplates=TEMPLATES, **sizes)
    federated = {"metadata": {}, "spec": {"template": template}}
    found = find_volumes(federated, {"west": of(1000, 1001)}, recorded=recorded)
    assert found.counts == expected
    assert found.clashing == (set(recorded) if len(recorded) > 1 else set())


def test_clusters_outside_a_project_are_counted_and_not_named() -> None:
    found = find_volumes(a_federated(), {"north": of(0)}, unknown={"east", "west"})
    note = "it begins where volumes of its name are; whether clusters [east] have volumes of its name is not known"
    assert note_of(found, {"north"}, {"north", "east"}) == note
    assert note_of(found, {"west"}, {"north"}) == ""
    text = describe_start(frozenset({"a", "b", "c"}), {"a", "x"}, ["x"], "fedctl approve h")
    assert "are in clusters [a] and in 2 clusters that its project does not have" in text
    assert "and in [x] it would start with empty ones" in text
    assert text.endswith("or: fedctl approve h")
    assert "name are in 1 cluster that" in describe_start(frozenset({"b"}), {"a"}, ["a"], "")


def test_nothing_matters_without_claims_and_unknown_clusters() -> None:
    assert find_volumes(a_federated(), {"north": of()}) == NO_VOLUMES
    assert not NO_VOLUMES.matter
    assert find_volumes(a_federated(), {}, is_awaited=True).matter
    assert find_volumes(a_federated(), {}, unknown={"west"}).matter
