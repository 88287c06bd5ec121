"""Overrides that the host's mutating admission takes back, beside what the properties say."""

from federation.planning.rendering.takenback import taken_back


def test_what_the_host_changes_beside_an_override_is_no_conflict() -> None:
    source = {"spec": {"replicas": 1, "paused": False, "strategy": {"type": "Recreate"}}}
    wanted = {"spec": {"replicas": 2, "paused": False, "strategy": {"type": "Recreate"}}}
    admitted = {"spec": {"replicas": 2, "paused": True, "strategy": {"type": "RollingUpdate"}}}
    assert taken_back(source, wanted, admitted) == []
    admitted["spec"]["replicas"] = 1
    assert taken_back(source, wanted, admitted) == ["spec.replicas"]
