"""When evictions halt, at the limits of each rule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.planning.changehold import Hold
from federation.planning.failover.halts import ClusterState, HaltOptions, HaltReason, next_halt, state_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = HaltOptions()


def states(*ready: str, spread_s: float = 0) -> list[ClusterState]:
    """Return clusters with these values of Ready; the last one changed `spread_s` later."""
    late = timedelta(seconds=spread_s)
    return [
        ClusterState(f"m{number}", value, NOW + (late if number == len(ready) - 1 else timedelta()), "HealthzNotOK")
        for number, value in enumerate(ready)
    ]


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (states("True", "True"), None),
        (states("Unknown"), None),
        (states("True", "Unknown"), None),
        (states("True", "Unknown", "False"), HaltReason.MAJORITY),
        (states("True", "True", "Unknown", "False"), None),
        (states("Unknown", "Unknown"), HaltReason.NETWORK),
        (states("Unknown", "Unknown", spread_s=10), HaltReason.NETWORK),
        (states("Unknown", "Unknown", spread_s=10.1), HaltReason.MAJORITY),
        (states("Unknown", "False"), HaltReason.MAJORITY),
    ],
)
def test_a_majority_or_the_whole_network_halts_evictions(seen: list[ClusterState], reason: HaltReason | None) -> None:
    halt = next_halt(None, seen, NOW, OPTIONS)
    assert (halt and halt.reason) == reason
    if halt is not None:
        text = (
            "all 2 clusters stopped answering within 10 s"
            if reason is HaltReason.NETWORK
            else "clusters are lost, more than"
        )
        assert text in halt.message


def test_clusters_that_answer_us_badly_are_not_lost_and_show_that_the_network_works() -> None:
    ours = [ClusterState(f"ours-{number}", "False", NOW, "CredentialsRejected") for number in range(3)]
    assert next_halt(None, [*ours, *states("Unknown", "True")], NOW, OPTIONS) is None
    assert next_halt(None, [*ours[:1], *states("Unknown")], NOW, OPTIONS) is None
    assert next_halt(None, ours, NOW, OPTIONS) is None


def test_a_share_of_one_halts_for_the_network_only() -> None:
    options = HaltOptions(share=1)
    assert next_halt(None, states("Unknown", "False"), NOW, options) is None
    halt = next_halt(None, states("Unknown", "Unknown"), NOW, options)
    assert halt is not None
    assert halt.reason is HaltReason.NETWORK


def test_evictions_resume_a_moment_after_the_halt() -> None:
    halt = next_halt(None, states("True", "Unknown", "False"), NOW, OPTIONS)
    settling = next_halt(halt, states("True", "True"), NOW, OPTIONS)
    until = NOW + timedelta(seconds=15)
    text = "enough clusters are back; evictions resume at 2026-01-01T00:00:15Z"
    assert settling == Hold(HaltReason.SETTLING, text, until)
    assert next_halt(settling, states("True", "True"), until - timedelta(seconds=1), OPTIONS) == settling
    assert next_halt(settling, states("True", "True"), until, OPTIONS) is None
    again = next_halt(settling, states("Unknown", "Unknown"), NOW, OPTIONS)
    assert again is not None
    assert again.reason is HaltReason.NETWORK


def a_cluster(*, joined: str = "True", since: Any = "2026-01-01T00:00:00Z", **metadata: str) -> dict[str, Any]:
    found = [
        {"type": "Joined", "status": joined},
        {"type": "Ready", "status": "Unknown", "lastTransitionTime": since},
    ]
    return {"metadata": {"name": "m1", **metadata}, "status": {"conditions": found}}


@pytest.mark.parametrize(
    ("cluster", "is_counted"),
    [
        (a_cluster(), True),
        (a_cluster(joined="False"), False),
        (a_cluster(deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (a_cluster(since="yesterday"), False),
        ({"metadata": {"name": "m1"}}, False),
    ],
)
def test_a_cluster_counts_once_it_was_probed_and_until_it_leaves(cluster: dict[str, Any], is_counted: bool) -> None:
    assert state_of(cluster) == (ClusterState("m1", "Unknown", NOW) if is_counted else None)
