"""A follower is where its leaders are, whatever the order of events."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.planning.federatedobject.placements import departed_clusters, placement_of
from federation.planning.followers.followerplan import plan_following, stored_leaders
from federation.planning.followers.index import FollowerIndex
from federation.planning.followers.references import Identity, Reference

LEADERS = [Identity("apps", "Deployment", "default", f"web-{number}") for number in range(4)]
FOLLOWERS = [Reference("", kind, name) for kind in ("ConfigMap", "Secret") for name in ("one", "two")]
CLUSTERS = ("east", "north", "west")
STAGES = ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))

clusters = st.frozensets(st.sampled_from(CLUSTERS))
leads = st.dictionaries(st.sampled_from(FOLLOWERS), clusters)
changes = st.lists(st.tuples(st.sampled_from(LEADERS), leads), max_size=20)


def _union(state: Mapping[Identity, Mapping[Reference, frozenset[str]]], follower: Reference) -> frozenset[str]:
    return frozenset().union(*(lead[follower] for lead in state.values() if follower in lead))


@given(changes)
def test_the_index_is_the_union_of_the_leaders_last_updates(
    history: list[tuple[Identity, dict[Reference, frozenset[str]]]],
) -> None:
    index = FollowerIndex()
    state: dict[Identity, dict[Reference, frozenset[str]]] = {}
    for leader, lead in history:
        before = {follower: (_union(state, follower), _leaders(state, follower)) for follower in FOLLOWERS}
        changed = index.put(leader, lead)
        state[leader] = lead
        for follower in FOLLOWERS:
            identity = Identity(*follower[:2], "default", follower.name)
            now = _union(state, follower), _leaders(state, follower)
            assert (index.clusters_of(identity), set(index.leaders_of(identity))) == now
            assert now == before[follower] or identity in changed


def _leaders(state: Mapping[Identity, Mapping[Reference, frozenset[str]]], follower: Reference) -> set[Identity]:
    return {leader for leader, lead in state.items() if follower in lead}


@given(st.lists(st.tuples(st.frozensets(st.sampled_from(LEADERS)), clusters), max_size=6), st.integers(1, 4))
def test_a_follower_ends_with_the_last_placement_and_records_departed_clusters(
    history: list[tuple[frozenset[Identity], frozenset[str]]], leaders_max: int
) -> None:
    fed_object = {
        "metadata": {"name": "any", "resourceVersion": "1", "annotations": {names.PENDING_CONTROLLERS: "[]"}},
        "spec": {"template": {}},
    }
    visited: set[str] = set()
    for leaders, placed in history:
        patch = plan_following(fed_object, STAGES, leaders, placed, {}, leaders_max=leaders_max)
        if patch is not None:
            fed_object = apply_merge_patch(fed_object, patch)
        visited |= placed
        assert plan_following(fed_object, STAGES, leaders, placed, {}, leaders_max=leaders_max) is None
        assert placement_of(fed_object, names.FOLLOWER_CONTROLLER) == sorted(placed)
        assert departed_clusters(fed_object) == visited - placed
        noted = set(stored_leaders(fed_object))
        assert noted <= leaders
        assert len(noted) == min(len(leaders), leaders_max)
