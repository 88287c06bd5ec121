"""Health: what is published after which probes, and when the next probe is due."""

from federation.api import names
from federation.controllers.cluster.names import REASON_CLUSTER_RESOURCE_COLLECTION_FAILED
from federation.planning.clusters import health
from federation.planning.clusters.health import Cadence, Damping, HealthState, Observation, Pending, next_probe_s

UP, DOWN, SICK = health.healthy(), health.unreachable("refused"), health.unhealthy("500")
DAMPING = Damping(failures_min=2, failure_s=3.0, recoveries_min=3, recovery_s=2.0, watch_s_max=30.0)
CADENCE = Cadence()


class Published:
    """The published health after a row of observations."""

    def __init__(self, state: HealthState | None = None) -> None:
        self.state = state
        self.pending: Pending | None = None

    def sees(self, state: HealthState, at_s: float, *, took_s: float = 0.0, answered_s: float = -1.0) -> HealthState:
        observed = Observation(state, at_s, at_s + took_s, answered_s)
        self.state, self.pending = health.damp(self.state, self.pending, observed, DAMPING)
        return self.state


def test_the_first_observation_is_published_at_once() -> None:
    assert Published().sees(DOWN, 0.0) == DOWN
    assert Published().sees(UP, 0.0) == UP


def test_a_loss_needs_failures_in_a_row_and_time() -> None:
    published = Published(UP)
    for at_s in (10.0, 10.5, 12.9):
        assert published.sees(DOWN, at_s) == UP
    assert published.sees(DOWN, 13.0) == DOWN
    assert published.pending is None

    published = Published(UP)
    assert published.sees(DOWN, 10.0, took_s=5.0) == UP, "one failure is not enough, however long it took"
    assert published.sees(DOWN, 15.5) == DOWN


def test_a_success_in_between_begins_a_new_row() -> None:
    published = Published(UP)
    published.sees(DOWN, 0.0)
    published.sees(UP, 2.5)
    assert published.sees(DOWN, 3.0) == UP
    assert published.sees(DOWN, 5.9) == UP
    assert published.sees(DOWN, 6.0) == DOWN


def test_failures_of_different_kinds_form_one_row() -> None:
    published = Published(UP)
    published.sees(DOWN, 0.0)
    published.sees(SICK, 2.0)
    assert published.sees(DOWN, 3.0) == DOWN


def test_an_answer_that_is_no_evidence_ends_a_row_of_losses() -> None:
    rejected = health.not_usable("CredentialsRejected", "401")
    published = Published(UP)
    for at_s in range(0, 20, 2):
        assert published.sees(DOWN if at_s % 4 else rejected, float(at_s)) == UP
    assert published.sees(DOWN, 20.0) == UP
    assert published.sees(DOWN, 23.0) == DOWN
    assert published.sees(rejected, 24.0) == DOWN
    assert published.sees(rejected, 27.0) == rejected, "a member that answers again is not lost"


def test_a_fault_of_ours_is_published_when_a_restart_of_the_member_does_not_explain_it() -> None:
    published = Published(UP)
    rejected = health.not_usable("CredentialsRejected", "401")
    assert [published.sees(rejected, at_s) for at_s in (0.0, 1.0, 29.0)] == [UP] * 3
    assert published.sees(rejected, 30.0) == rejected
    assert published.sees(UP, 31.0) == UP


def test_time_in_which_the_process_stood_still_is_no_time_of_a_loss() -> None:
    frozen = Pending(DOWN, 0.0, 1, away_s=5.0)
    seen = Observation(DOWN, 60.0, 61.0, away_before_s=64.5, away_s=64.5)
    assert health.damp(UP, frozen, seen, DAMPING)[0] == UP, "it was looked at for 1.5 s"
    later = Observation(DOWN, 62.0, 62.6, away_before_s=64.5, away_s=64.5)
    assert health.damp(UP, health.damp(UP, frozen, seen, DAMPING)[1], later, DAMPING)[0] == DOWN


def test_the_return_of_a_silent_member_needs_successes_in_a_row_and_time() -> None:
    published = Published(DOWN)
    assert published.sees(UP, 0.0) == DOWN
    assert published.sees(UP, 2.0) == DOWN, "two are not enough"
    assert published.sees(UP, 2.1) == UP
    published = Published(SICK)
    assert [published.sees(UP, at_s) for at_s in (0.0, 0.5, 1.0, 1.9)] == [SICK] * 4
    assert published.sees(UP, 2.0) == UP


def test_the_first_success_of_a_process_is_published_at_once() -> None:
    for lost in (DOWN, SICK):
        state, pending = health.damp(lost, None, Observation(UP, 1.0, 1.0, is_first_success=True), DAMPING)
        assert (state, pending) == (UP, None)
    state, _ = health.damp(UP, None, Observation(DOWN, 1.0, 1.0, is_first_success=True), DAMPING)
    assert state == UP, "a loss has to last"


def test_a_member_that_was_only_incomplete_is_ready_at_once() -> None:
    incomplete = health.not_usable(REASON_CLUSTER_RESOURCE_COLLECTION_FAILED, "no list yet")
    assert Published(incomplete).sees(UP, 0.0) == UP


def test_another_cluster_is_published_at_once() -> None:
    mismatch = health.not_usable(names.REASON_IDENTITY_MISMATCH, "another uid")
    assert Published(UP).sees(mismatch, 0.0) == mismatch


def test_another_reason_for_being_unready_must_last_too() -> None:
    published = Published(DOWN)
    assert published.sees(SICK, 0.0) == DOWN
    assert published.sees(DOWN, 1.0) == DOWN
    assert published.sees(SICK, 2.0) == DOWN
    assert published.sees(SICK, 31.0) == DOWN
    assert published.sees(SICK, 32.0) == SICK


def test_a_watch_event_after_the_beginning_of_a_silent_probe_is_a_sign_of_life() -> None:
    published = Published(UP)
    published.sees(DOWN, 0.0, took_s=2.0, answered_s=1.0)
    assert published.sees(DOWN, 4.0, took_s=2.0, answered_s=5.0) == UP
    assert published.sees(DOWN, 6.5, took_s=2.0, answered_s=5.0) == DOWN, "no event since this probe began"


def test_watch_events_do_not_keep_a_member_healthy_for_ever() -> None:
    published = Published(UP)
    published.sees(DOWN, 0.0, took_s=2.0, answered_s=1.0)
    assert published.sees(DOWN, 27.0, took_s=2.0, answered_s=28.0) == UP
    assert published.sees(DOWN, 29.0, took_s=2.0, answered_s=30.0) == DOWN


def test_an_answer_other_than_ok_counts_although_watches_are_active() -> None:
    published = Published(UP)
    published.sees(SICK, 0.0, answered_s=9.0)
    assert published.sees(SICK, 29.0, answered_s=30.0) == UP, "an overloaded member still takes writes"
    assert published.sees(SICK, 30.0, answered_s=39.0) == SICK


def test_a_silent_watch_alone_is_no_loss() -> None:
    published = Published(UP)
    for at_s in range(100):
        assert published.sees(UP, float(at_s), answered_s=-1.0) == UP


def test_a_healthy_member_is_probed_when_it_was_silent_for_a_period() -> None:
    assert next_probe_s(UP, None, 100.0, 100.0, CADENCE) == 103.0
    assert next_probe_s(UP, None, 100.0, 102.0, CADENCE) == 105.0
    assert next_probe_s(UP, None, 100.0, 109.0, CADENCE) == 110.0, "watch events do not replace all probes"
    assert next_probe_s(UP, None, 100.0, float("-inf"), CADENCE) == 103.0


def test_a_suspected_member_is_probed_quickly_and_a_lost_one_slowly() -> None:
    assert next_probe_s(UP, Pending(DOWN, 99.0), 100.0, 100.0, CADENCE) == 100.5
    assert next_probe_s(DOWN, None, 100.0, 99.0, CADENCE) == 102.0
    assert next_probe_s(None, None, float("-inf"), float("-inf"), CADENCE) == float("-inf")


def test_the_defaults_report_a_loss_within_ten_seconds() -> None:
    assert health.detection_s_max(CADENCE, DAMPING) <= 10.0


def test_verdicts_have_ready_and_offline() -> None:
    assert UP.is_ready
    assert not SICK.is_ready
    assert DOWN.offline == "True"
    assert health.not_usable("R", "m").offline == "False"
