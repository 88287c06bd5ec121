"""Which clusters' pods count, and which of them as updated, by the published statuses."""

from federation.apimachinery.resources import Object
from federation.dispatch.status import departing_clusters, outdated_clusters
from federation.planning.status.staleness import without_updated


def published(**statuses: str) -> Object:
    """Return a federated object that is placed in "east" and "north"."""
    clusters = [{"cluster": name, "status": status} for name, status in statuses.items()]
    placement = [{"cluster": "east"}, {"cluster": "north"}]
    return {"spec": {"placements": [{"controller": "c", "placement": placement}]}, "status": {"clusters": clusters}}


def test_a_cluster_that_left_the_placement_and_keeps_pods_is_departing() -> None:
    found = published(east="WaitingForReplicas", north="OK", west="WaitingForReplicas", south="WaitingForRemoval")
    assert departing_clusters(found) == {"west"}
    assert departing_clusters({}) == frozenset()


def test_pods_of_departing_clusters_and_of_old_templates_are_outdated() -> None:
    found = published(east="WaitingForUpdate", north="WaitingForReplicas", west="WaitingForReplicas")
    assert outdated_clusters(found) == {"east", "west"}


def test_outdated_pods_count_except_as_updated() -> None:
    status = {"replicas": 2, "updatedReplicas": 2, "updatedReadyReplicas": 1}
    assert without_updated({"status": status})["status"] == {"replicas": 2}
    assert without_updated({"metadata": {}})["status"] == {}
