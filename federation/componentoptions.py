"""From the settings to the options of controllers and connections that both composition roots need. Pure."""

from federation import __version__
from federation.apimachinery.errors import ConfigurationError
from federation.client.limitedtransport import TransportLimits
from federation.client.pool import PoolOptions
from federation.client.session import HTTPOptions
from federation.controllers.cluster.controller import ClusterOptions
from federation.controllers.cluster.monitor import MonitorOptions
from federation.controllers.cluster.tokenrenewal import TOKEN_LIFETIME_S_MIN, TokenOptions
from federation.controllers.schedule.controller import ScheduleOptions
from federation.delivery.controller import SyncOptions
from federation.delivery.host.hostadmission import HostAdmissionOptions
from federation.journal.decisions import JournalOptions
from federation.settings import Settings
from federation.web.registration import RegistrationOptions

_AGENT_CERTIFICATE_S_MIN = 60


def schedule_options(settings: Settings) -> ScheduleOptions:
    """Return the options of the schedule controller."""
    return ScheduleOptions(
        allows_annotations=settings.allows_scheduling_annotations,
        writes_kubeadmiral_triggers=settings.writes_kubeadmiral_triggers,
        version=__version__,
        units=settings.units,
        guard=settings.guard,
        failover=settings.failover,
    )


def sync_options(settings: Settings) -> SyncOptions:
    """Return the options of the sync controller."""
    return SyncOptions(
        guard=settings.guard, admission=HostAdmissionOptions(counts_limits=not settings.has_existing_host)
    )


def cluster_options(settings: Settings) -> ClusterOptions:
    """Return the options of the cluster controller."""
    return ClusterOptions(
        monitor=MonitorOptions(__version__, cadence=settings.cadence, damping=settings.damping),
        token=TokenOptions(max(settings.member_token_lifetime_s, TOKEN_LIFETIME_S_MIN)),
    )


def registration_options(settings: Settings) -> RegistrationOptions:
    """Return the options of agents' certificates; ConfigurationError for a lifetime that is too short to renew."""
    if settings.agent_certificate_lifetime_s < _AGENT_CERTIFICATE_S_MIN:
        raise ConfigurationError(
            f"agent-certificate-lifetime-s: {settings.agent_certificate_lifetime_s} is below {_AGENT_CERTIFICATE_S_MIN}"
        )
    return RegistrationOptions(settings.agent_certificate_lifetime_s)


def journal_options(settings: Settings) -> JournalOptions:
    """Return the limits of the journal of decisions."""
    return JournalOptions(
        age_days_max=settings.decisions_age_days_max,
        rows_per_object_max=settings.decisions_per_object_max,
        rows_max=settings.decisions_max,
        bytes_max=settings.decisions_bytes_max,
        inputs_bytes_max=settings.decision_inputs_bytes_max,
    )


def pool_options(settings: Settings) -> PoolOptions:
    """Return the options of the connections to members."""
    return PoolOptions(
        http=HTTPOptions(
            request_timeout_s=settings.member_request_timeout_s, response_bytes_max=settings.member_response_bytes_max
        ),
        limits=TransportLimits(in_flight_max=settings.member_requests_in_flight_max),
    )
