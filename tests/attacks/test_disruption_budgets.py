"""Attack: a tenant's rollout that never ends holds the ClusterDisruptionBudgets of all."""

from datetime import UTC, datetime, timedelta

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.planning.failover.clusterbudgets import WaveBudgets, budgeted_clusters, disruptions_of, find_blocked

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BUDGET: Object = {"metadata": {"name": "all"}, "spec": {"maxUnavailable": 1}}


def a_cluster(name: str) -> Object:
    conditions = [
        {"type": "Joined", "status": "True"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    return {"metadata": {"name": name}, "status": {"conditions": conditions}}


def test_a_rollout_that_is_paused_holds_neither_a_drain_nor_the_wave_of_others_for_ever() -> None:
    clusters = [a_cluster("east"), a_cluster("west")]

    def ask(age_s: float) -> tuple[bool, bool]:
        since = to_rfc3339(NOW - timedelta(seconds=age_s))
        status = {"clusters": [{"name": "east", "disruptedSince": since}]}
        rollout = {"spec": {"paused": True}, "status": status}
        views = budgeted_clusters(clusters, [disruptions_of(rollout)], NOW)
        drain = find_blocked("west", views, [BUDGET], NOW)
        wave = WaveBudgets(views, [BUDGET], NOW).find_blocked("west")
        if wave is not None:
            assert wave.until == NOW + timedelta(seconds=3600 - age_s), "it is asked again when the hour is over"
        return drain is None, wave is None

    assert ask(60) == (False, False)
    assert ask(3599) == (False, False)
    assert ask(3600) == (True, True)
