from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS
from federation.client.pool import ClusterPool
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules.memberrecord import MemberKey
from federation.runtime.controller import Key
from federation.runtime.members import Members


def test_an_object_is_forgotten_everywhere_at_once() -> None:
    kept, gone, key, other = KeptState(), list[Key](), Key("ns", "a"), Key("ns", "b")
    times, marks = kept.by_object({key: 1.0, other: 2.0}), kept.by_object({key, other})
    deletion = kept.of_deletion({key: 3.0})
    kept.on_object_gone(gone.append)
    kept.forget_object(key, is_deleting=True)
    assert (times, marks, deletion, gone) == ({other: 2.0}, {other}, {key: 3.0}, [])
    kept.forget_object(key)
    assert (times, marks, deletion, gone) == ({other: 2.0}, {other}, {}, [key])


def test_a_cluster_is_forgotten_everywhere_at_once() -> None:
    kept, gone = KeptState(), list[str]()
    counts, marks = kept.by_cluster({"m1": 1, "m2": 2}), kept.by_cluster({"m1"})
    kept.on_cluster_gone(gone.append)
    for _ in range(2):
        kept.forget_cluster("m1")
    assert (counts, marks, gone) == ({"m2": 2}, set(), ["m1", "m1"])


def test_a_cluster_that_joins_again_has_had_no_incomplete_cache_before() -> None:
    """Otherwise its objects would be reported as unknown at once, instead of after the usual patience."""
    clock, kept = ManualClock(), KeptState()
    cache = MemberObjectCache(Members(ClusterPool(clock=clock), clock=clock), MemberRecords(clock), clock, kept)
    key = MemberKey("m1", DEPLOYMENTS, "default", "web")
    assert cache.sight(key, is_ready=True).unseen_s == 0
    clock.skip(60)
    assert cache.sight(key, is_ready=True).unseen_s == 60
    kept.forget_cluster("m1")
    assert cache.sight(key, is_ready=True).unseen_s == 0
