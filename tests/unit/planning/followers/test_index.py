"""The index of leaders and followers."""

from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.references import Identity, Reference

SETTINGS = Reference("", "ConfigMap", "settings")
EAST, WEST = frozenset(("east",)), frozenset(("west",))


def test_a_workload_leads_in_its_own_namespace_only() -> None:
    index = FollowerIndex()
    ours, theirs = (Identity("apps", "Deployment", namespace, "web") for namespace in ("ours", "theirs"))
    index.put(ours, {SETTINGS: EAST})
    index.put(theirs, {SETTINGS: WEST})
    follower = Identity(*SETTINGS[:2], "ours", "settings")
    assert (set(index.leaders_of(follower)), index.clusters_of(follower)) == ({ours}, EAST)
    assert index.followers_of(ours) == {follower: EAST}
    index.put(ours, {})
    assert (index.leaders_of(follower), index.clusters_of(follower), index.followers_of(ours)) == (set(), set(), {})
    assert index.clusters_of(follower._replace(namespace="theirs")) == WEST
