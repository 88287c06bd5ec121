"""For how long NoExecute taints are tolerated."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.scheduling.framework.testing import NOW, a_cluster, a_unit, run_filter
from federation.scheduling.framework.types import Cluster, Code, Taint, Toleration
from federation.scheduling.policyspec import to_tolerations
from federation.scheduling.tolerations import ended_tolerations, toleration_end, with_defaults
from federation_plugins.taint_toleration import TaintToleration

NOT_READY, UNREACHABLE = names.TAINT_NOT_READY, names.TAINT_UNREACHABLE


def _default(key: str) -> Toleration:
    return Toleration(key, "Exists", "", "NoExecute", 300)


def _lost(key: str = UNREACHABLE, added: datetime = NOW) -> Cluster:
    return a_cluster("east").tainted(key, effect="NoSchedule").tainted(key, effect="NoExecute", added=added).built()


def _end(cluster: Cluster, *tolerations: Toleration) -> float | None:
    found = toleration_end(tolerations, cluster)
    return None if found is None else (found[0] - NOW).total_seconds()


def test_a_policy_without_tolerations_tolerates_a_lost_cluster_for_the_default_time() -> None:
    assert with_defaults((), 300) == (_default(NOT_READY), _default(UNREACHABLE))
    assert with_defaults((), None) == ()
    assert _end(_lost(), *with_defaults((), 300)) == 300.0


@pytest.mark.parametrize(
    ("own", "added"),
    [
        (Toleration(UNREACHABLE, "Exists", "", "NoExecute", 10), [NOT_READY]),
        (Toleration(UNREACHABLE, "Exists"), [NOT_READY]),
        (Toleration(UNREACHABLE, "Exists", "", "NoSchedule"), [NOT_READY, UNREACHABLE]),
        (Toleration("", "Exists"), []),
        (Toleration("", "Exists", "", "NoSchedule"), [NOT_READY, UNREACHABLE]),
        (Toleration("other", "Exists"), [NOT_READY, UNREACHABLE]),
    ],
    ids=["for a time", "for ever", "of NoSchedule", "of everything", "of all NoSchedule", "of another key"],
)
def test_a_toleration_of_the_policy_replaces_the_default(own: Toleration, added: list[str]) -> None:
    assert with_defaults((own,), 300) == (own, *map(_default, added))


def test_the_first_matching_toleration_counts() -> None:
    forever, short = Toleration(UNREACHABLE, "Exists"), Toleration(UNREACHABLE, "Exists", seconds=5)
    assert _end(_lost(), short, forever) == 5.0
    assert _end(_lost(), forever, short) is None


def test_a_toleration_has_no_end_without_seconds_or_without_the_time_of_the_taint() -> None:
    assert _end(_lost(), Toleration("", "Exists")) is None
    without_time = a_cluster("east").tainted("a", effect="NoExecute").built()
    assert _end(without_time, Toleration("a", "Exists", seconds=5)) is None
    assert _end(_lost()) is None, "it is not tolerated at all, which the filter decides"


def test_negative_and_huge_seconds_are_read_as_kubernetes_reads_them() -> None:
    assert _end(_lost(), Toleration("", "Exists", seconds=-1)) == 0.0
    assert _end(_lost(), Toleration("", "Exists", seconds=2**62)) is not None


def test_the_filter_rejects_a_current_cluster_when_the_toleration_has_ended() -> None:
    cluster, tolerations = _lost(), with_defaults((), 300)
    before, after = (ended_tolerations(tolerations, [cluster], NOW + timedelta(seconds=s)) for s in (299.9, 300))
    assert before == {}
    assert after == {"east": Taint(UNREACHABLE, "", "NoExecute")}
    unit = a_unit(tolerations=tolerations, current={"east": 2})
    assert run_filter(TaintToleration(), unit, cluster).code is Code.SUCCESS
    unit = a_unit(tolerations=tolerations, current={"east": 2}, ended_tolerations=after)
    refused = run_filter(TaintToleration(), unit, cluster)
    assert refused.reasons == (
        f"cluster(s) had taint {{{UNREACHABLE}: }}, that the schedulingUnit tolerated until now",
    )
    assert TaintToleration().cache_key(unit) != TaintToleration().cache_key(a_unit(tolerations=tolerations))


@given(
    st.lists(
        st.builds(
            Toleration,
            key=st.sampled_from(["", "a", UNREACHABLE]),
            operator=st.just("Exists"),
            value=st.just(""),
            effect=st.sampled_from(["", "NoExecute", "NoSchedule"]),
            seconds=st.none() | st.integers(-5, 400),
        ),
        max_size=4,
    ),
    st.integers(0, 500),
)
def test_a_toleration_has_ended_exactly_from_its_end_on(tolerations: list[Toleration], after_s: int) -> None:
    cluster = _lost()
    end = toleration_end(tolerations, cluster)
    now = NOW + timedelta(seconds=after_s)
    assert bool(ended_tolerations(tolerations, [cluster], now)) == (end is not None and end[0] <= now)


def test_all_fields_of_a_toleration_are_read() -> None:
    entry = {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5}
    assert to_tolerations([entry, {}]) == (
        Toleration("k", "Equal", "v", "NoExecute", 5),
        Toleration("", "", "", "", None),
    )
