"""The part of `fedctl why` about delivery."""

import io

from rich.console import Console

from federation.cli.whydelivery import print_delivery


def _printed(**more: object) -> str:
    row = {"cluster": "east", "placed": True, "wanted": 2, "applied": "yes", "ready": 2, "status": "OK", "message": ""}
    output = io.StringIO()
    print_delivery(Console(file=output, width=400), {"conditions": [], "clusters": [{**row, **more}]})
    return output.getvalue()


def test_drift_is_told_below_the_clusters() -> None:
    drift = {
        "message": 'spec.replicas was changed by "[red]" (Update at 2026-01-01T00:00:00Z)',
        "corrections": 3,
        "since": "2026-01-01T00:00:00Z",
        "last": "2026-01-01T00:01:00Z",
        "pausedUntil": "",
    }
    assert _printed(drift=drift).splitlines()[-1].split(None, 1) == [
        "drift",
        (
            'east: spec.replicas was changed by "[red]" (Update at 2026-01-01T00:00:00Z); '
            "written back 3 times since 2026-01-01T00:00:00Z, last at 2026-01-01T00:01:00Z"
        ),
    ]
    paused = _printed(drift={**drift, "pausedUntil": "2026-01-01T00:02:00Z"})
    assert paused.rstrip().endswith("; corrections pause until 2026-01-01T00:02:00Z")


def test_a_tainted_cluster_shows_until_when_it_is_tolerated() -> None:
    later = _printed(toleratedUntil="9999-01-01T12:03:20Z").splitlines()[-1]
    assert later.split(None, 1)[0] == "taints"
    assert "east: tolerated until 12:03:20 UTC, in " in later
    assert later.endswith("; then the object leaves the cluster")
    over = _printed(toleratedUntil="2020-01-01T12:03:20Z").splitlines()[-1]
    assert over.endswith("east: tolerated until 12:03:20 UTC; the object is about to leave the cluster")


def test_without_drift_nothing_is_told_of_it() -> None:
    assert "drift" not in _printed()


def test_an_autoscaler_that_owns_the_replicas_is_named() -> None:
    assert _printed(scaler="web").splitlines()[-1].split(None, 1) == [
        "replicas",
        'east: HorizontalPodAutoscaler "web" in the cluster owns the replicas',
    ]


def test_followers_that_a_cluster_refuses_are_named() -> None:
    output = io.StringIO()
    text = "ConfigMap settings is not the host's in east"
    refused = {"type": "FollowersDelivered", "status": "False", "message": text}
    print_delivery(Console(file=output, width=400), {"conditions": [refused], "clusters": []})
    assert text in output.getvalue()
