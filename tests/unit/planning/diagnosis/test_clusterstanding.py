"""The classes of statuses in clusters."""

from federation.delivery.rules.status import AS_WANTED, ClusterStatus
from federation.planning.diagnosis.clusterstanding import Standing, standing_of, words_for
from federation.planning.status import sourceconditions


def test_every_status_has_a_class_and_words() -> None:
    for status in ClusterStatus:
        assert words_for(status) != str(status) or status is ClusterStatus.FINISHED, status
    assert {status for status in ClusterStatus if standing_of(status) is Standing.CURRENT} == AS_WANTED


def test_what_ends_by_itself_is_no_refusal() -> None:
    for status in sourceconditions._TRANSIENT:
        assert standing_of(status) in (Standing.CURRENT, Standing.UNDERWAY), status
