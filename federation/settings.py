"""The settings of a control plane, from flags, environment variables and defaults.

Flags win over `FEDERATION_*` variables, variables over defaults. Only `assembly` and `cli` import this module; every
layer has its own options dataclass, which the properties of `Settings` build.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path

from federation.api.secretkinds import ENCRYPTED_PREFIXES, UNAUDITED_RESOURCES
from federation.api.secretvalues import carries_secret_values, without_secret_values
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.jsonsize import VALUES_MAX
from federation.apimachinery.publicaddresses import Network, parse_networks
from federation.apiserver.audit.auditoptions import AuditOptions, to_audit_options
from federation.apiserver.auth.oidcclaims import OIDCOptions, to_required_claims
from federation.apiserver.auth.serveridentity import ServerIdentity, to_server_identity
from federation.apiserver.store.encryptionkeys import EncryptionOptions
from federation.journal.decisions import ENCRYPTION_PREFIX
from federation.planning.clusters.health import Cadence, Damping
from federation.planning.cost.ratelist import RateOptions, to_rate_options
from federation.planning.failover.failoveroptions import FailoverOptions
from federation.planning.failover.halts import HaltOptions
from federation.planning.failover.holdout import HoldoutOptions
from federation.planning.failover.pace import PaceOptions
from federation.planning.guard.ledger import GuardOptions
from federation.runtime.leaderelection import LeaderOptions
from federation.scheduling.annotationswitch import DISABLED, ENABLED
from federation.scheduling.occasions import UnitOptions
from federation.settingtexts import to_value
from federation.web.ui.oidcoptions import OIDCLoginOptions, to_login_options

ALL_REQUESTS, GPU_REQUESTS = "all", "gpus"
OBJECT_VALUES_MIN = 10_000
"""CustomResourceDefinitions have thousands of values."""
SHORT_TRIGGERS, KUBEADMIRAL_TRIGGERS = "short", "kubeadmiral"

_EMBEDDED_ONLY = (
    "advertise_address", "advertise_url", "audit_policy_file", "new", "oidc_issuer_url", "role",
    "store_bytes_max", "tls_cert_file", "tls_san",
)  # fmt: skip
"""Settings that an existing API server as host has itself."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one control plane."""

    directory: Path
    """Folder of the database, the keys and the kubeconfigs."""
    host: str = "127.0.0.1"
    """Address to listen on; loopback by default."""
    port: int = 7443
    """TCP port; 0 picks a free one."""
    advertise_address: str = ""
    """IP address in the endpoints of the Service `default/kubernetes`; empty for `host`, or the address of the default
    route's interface when `host` is loopback or all interfaces."""
    advertise_url: str = ""
    """https://HOST[:PORT] in the administrator's kubeconfig, for example that of a load balancer; empty for `host`."""
    tls_san: tuple[str, ...] = ()
    """Further DNS names and IP addresses in the serving certificate."""
    tls_cert_file: str = ""
    """PEM file of a serving certificate and its chain, instead of one that is issued and renewed here."""
    tls_key_file: str = ""
    """PEM file of its key; both are read again when they change."""
    tls_ca_file: str = ""
    """PEM file of the CA that issued it, for kubeconfigs; empty for a CA that clients trust anyway."""
    store_url: str = ""
    """SQLAlchemy URL of the store; empty for SQLite in `directory`."""
    host_kubeconfig: str = ""
    """Kubeconfig of an existing Kubernetes API server that is the host; empty for the embedded API server."""
    in_cluster: bool = False
    """Use the API server of the cluster in which this process runs as a pod as the host, as its service account."""
    host_url: str = ""
    """https:// address of this process for that API server and its users, or https://NAME.NAMESPACE.svc[:PORT]."""
    ui_port: int = -1
    """TCP port of the web UI beside an existing API server; 0 picks a free one, -1 serves none."""
    store_bytes_max: int = 0
    """Size of the database above which creates and updates are refused, deletions not; 0 for no quota."""
    new: bool = False
    """Start although the database or the keys are missing beside the other one; both are missing in a new directory."""
    encryption_key_file: str = ""
    """File with the keys that encrypt Secrets in the store; empty for none. `fedctl encryption-key` creates it."""
    encryption_key_command: str = ""
    """Command that prints these keys instead, for a key management service; run once at the start."""
    requests_in_flight_max: int = 600
    """Concurrent requests to this API, except watches and requests of system:masters."""
    watches_max: int = 10_000
    """Concurrent watches of this API."""
    namespace_bytes_max: int = 256 * 1024 * 1024
    """Stored bytes of one namespace, with the federated copies of its objects; 0 for no limit."""
    object_values_max: int = VALUES_MAX
    """Keys and list items of one object, besides its managed fields, that a request may write; at least 10,000."""
    member_requests_in_flight_max: int = 16
    """Concurrent requests to one member."""
    member_request_timeout_s: float = 10.0
    """Deadline of one request to a member."""
    member_response_bytes_max: int = 32 * 1024 * 1024
    """Longest answer of a member after decompression; larger pages of lists are requested again with fewer objects."""
    member_cache_bytes_max: int = 1024 * 1024 * 1024
    """Estimated memory of the cached objects of one member; pods that run are not cached."""
    member_token_lifetime_s: int = 30 * 24 * 3600
    """Requested lifetime of service account tokens, at least 600; they are renewed after a third of it."""
    agent_certificate_lifetime_s: int = 30 * 24 * 3600
    """Life of the certificates of agents, at least 60; they are renewed after two thirds of it."""
    role: str = "all"
    """On a shared database: `api` never runs the controllers, `controllers` is in no endpoints; `all` is both."""
    lease_duration_s: float = 8.0
    """How long other processes on the same database wait for a leader that does not renew its Lease."""
    lease_renew_deadline_s: float = 5.0
    """How long a leader may fail to renew before it stops."""
    lease_retry_period_s: float = 1.0
    """Pause between renewals of the Lease; other processes try to take it twice as often."""
    health_period_s: float = 3.0
    """Interval of health probes of a member; watch events count as probes."""
    health_timeout_s: float = 3.0
    """Deadline of a health probe."""
    health_failures: int = 2
    """Failed probes in a row before a loss of health is published."""
    health_threshold_s: float = 3.0
    """How long they must last. With the defaults a dead or hanging member is reported within 10 s."""
    health_recoveries: int = 3
    """Successful probes in a row before the return of a member is published."""
    health_recovery_s: float = 2.0
    """How long they must last."""
    namespace_exclude_regexp: str = ""
    """Further namespaces, besides the built-in ones, that are not propagated automatically."""

    scheduling_annotations: str = "enabled"
    """Whether annotations on objects override their policies, unless the namespace decides: enabled or disabled."""
    scheduling_requests: str = ALL_REQUESTS
    """Pod requests that count for scheduling: all, or gpus only, as in KubeAdmiral."""
    scheduling_triggers: str = SHORT_TRIGGERS
    """Format of the scheduling triggers on objects: short, or kubeadmiral; both are read."""
    failover_toleration_s: int = 300
    """How long a policy without its own toleration tolerates a cluster that is not ready or unreachable."""

    gate_allowed_networks: tuple[str, ...] = ()
    """Networks, such as 10.20.0.0/16, that gates of rollouts and remedies may reach beside global unicast addresses."""
    metric_sources_file: str = ""
    """YAML file with the Prometheus servers that objectives of rollouts may name; empty for none."""
    cluster_providers_file: str = ""
    """YAML or JSON file with the programs that give credentials for clusters of ClusterProfiles; empty for none."""
    cluster_rates_url: str = ""
    """http:// or https:// URL of clusters' prices and emissions, read every interval, at least 10 s; empty for none."""
    cluster_rates_interval_s: float = 300.0
    preemption_interval_s: float = 0.0
    """Time between two rounds in which workloads give way to those of higher priority, at least 10; 0 for never."""
    guard_share: float = 0.2
    """Share of what a policy, type or cluster has that may move without approval; 1 for no guard but that of data."""
    guard_count: int = 10
    """Objects that may move in any case."""
    guard_window_s: float = 600.0
    """Time over which moves are counted together."""

    failover_replicas_per_minute: int = 600
    """Replicas that leave lost and drained clusters within any minute; 0 turns failover off."""
    failover_namespace_share: float = 0.5
    """Share of it that the replicas of one namespace may use."""
    failover_halt_share: float = 0.5
    """More than this share of the clusters not ready halts failover; 1 for no such halt."""
    failover_settle_s: float = 15.0
    """How long failover waits for the loss of further clusters, and after a halt."""
    failover_holdout_s: float = 60.0
    """How long a cluster lost twice in a row must be ready before its taints end; doubled for each further loss."""
    failover_holdout_s_max: float = 3600.0
    """The longest such time; losses count together within it."""
    failback_stable_s: float = 300.0
    """How long a cluster must be ready before replicas return; `autoMigration.failback` of a policy goes first."""
    failback_interval_s: float = 60.0
    """Time between two batches of replicas that return."""

    decisions_age_days_max: float = 14.0
    """How long scheduling decisions are kept for `fedctl why`; the newest of an object is kept longer."""
    decisions_per_object_max: int = 20
    """Decisions kept per object."""
    decisions_max: int = 200_000
    """Decisions kept in total."""
    decisions_bytes_max: int = 512 * 1024 * 1024
    """Bytes of all explanations: one has 1.5 kB with 3 clusters, 14 kB with 100, 120 kB with 1,000."""
    decision_inputs_bytes_max: int = 256 * 1024 * 1024
    """Bytes of what decisions depended on, for `fedctl replay`: 0.2 to 0.5 kB per decision; 0 records nothing."""

    oidc_issuer_url: str = ""
    """OIDC issuer whose ID tokens are accepted as bearer tokens; empty for none. Names are kube-apiserver's flags."""
    oidc_client_id: str = ""
    """Required audience of ID tokens."""
    oidc_username_claim: str = "sub"
    oidc_username_prefix: str = ""
    """Empty for the issuer's URL and `#`, unless the claim is `email`; `-` for no prefix."""
    oidc_groups_claim: str = ""
    oidc_groups_prefix: str = ""
    oidc_required_claim: tuple[str, ...] = ()
    """key=value claims that ID tokens must have."""
    oidc_ca_file: str = ""
    """PEM file of the issuer's certificate authority; empty for the system's authorities."""
    oidc_signing_algs: tuple[str, ...] = ("RS256",)
    oidc_client_secret_file: str = ""
    """File with the client's secret, for the log-in page of the web UI; empty for a public client."""
    oidc_scopes: tuple[str, ...] = ("openid", "profile", "email")
    """Scopes that the log-in page of the web UI asks for; groups often need one of their own."""

    otlp_endpoint: str = ""
    """URL of an OpenTelemetry collector (OTLP/HTTP); empty for OTEL_EXPORTER_OTLP_ENDPOINT. Needs the extra `otel`."""

    audit_policy_file: str = ""
    """audit.k8s.io/v1 Policy file; empty for no audit log."""
    audit_log_path: str = ""
    """File for audit events, one line of JSON each; `-` for standard output, empty for `audit.log` in `directory`."""
    audit_log_maxsize: int = 100
    """Size in MiB at which the file is rotated."""
    audit_log_maxbackup: int = 10
    """Rotated files that are kept."""
    audit_log_mode: str = "batch"
    """batch drops and counts events that cannot be written in time; blocking lets requests wait."""

    @property
    def has_existing_host(self) -> bool:
        """Whether the host is an existing API server; ConfigurationError for settings that do not go together."""
        if self.host_kubeconfig and self.in_cluster:
            raise ConfigurationError("host-kubeconfig and in-cluster name two hosts; give one of them")
        if not self.host_kubeconfig and not self.in_cluster:
            if self.host_url or self.ui_port >= 0:
                name = "host-url" if self.host_url else "ui-port"
                raise ConfigurationError(f"{name} is set without host-kubeconfig or in-cluster")
            return False
        for field in fields(self):
            if field.name in _EMBEDDED_ONLY and getattr(self, field.name) != field.default:
                name = field.name.replace("_", "-")
                raise ConfigurationError(f"{name} is for the embedded API server; set it up on the host instead")
        return True

    @property
    def database_url(self) -> str:
        """The store's URL with the default filled in."""
        return self.store_url or f"sqlite:///{self.directory / 'state.db'}"

    @property
    def identity(self) -> str:
        """A name of this server among those that share its database, the same after a restart."""
        return blake2b(f"{platform.node()} {self.directory.absolute()}".encode(), digest_size=8).hexdigest()

    @property
    def leader_election(self) -> LeaderOptions:
        """The times of the leader election; ConfigurationError unless duration > renew deadline > retry period > 0."""
        times = LeaderOptions(self.lease_duration_s, self.lease_renew_deadline_s, self.lease_retry_period_s)
        if not times.lease_duration_s > times.renew_deadline_s > times.retry_period_s > 0:
            raise ConfigurationError("lease-{duration,renew-deadline,retry-period}-s: each must be below the last")
        return times

    @property
    def advertised(self) -> str:
        """The checked `advertise_address`; ConfigurationError unless it is an IP address that endpoints may have."""
        text = self.advertise_address
        try:
            address = ip_address(text) if text else None
        except ValueError:
            raise ConfigurationError(f"advertise-address: {text!r} is not an IP address") from None
        if address is not None and (address.is_unspecified or address.is_loopback or address.is_link_local):
            raise ConfigurationError(
                f"advertise-address: {text} is loopback, link-local or unspecified; give an address of this machine"
                f" that clients can reach"
            )
        return text

    @property
    def tls(self) -> ServerIdentity:
        """How clients reach this server and verify it; ConfigurationError names the wrong setting."""
        return to_server_identity(
            self.tls_san, self.advertise_url, self.tls_cert_file, self.tls_key_file, self.tls_ca_file
        )

    @property
    def object_values(self) -> int:
        """The checked `object_values_max`; ConfigurationError for a limit that would refuse ordinary objects."""
        if self.object_values_max < OBJECT_VALUES_MIN:
            raise ConfigurationError(
                f"object-values-max: {self.object_values_max} is below {OBJECT_VALUES_MIN}, which ordinary objects need"
            )
        return self.object_values_max

    @property
    def encryption(self) -> EncryptionOptions:
        """The choice of stored values that are encrypted, and the source of the keys."""
        return EncryptionOptions(
            Path(self.encryption_key_file).expanduser() if self.encryption_key_file else None,
            self.encryption_key_command,
            prefixes=(*ENCRYPTED_PREFIXES, ENCRYPTION_PREFIX),
            is_secret=carries_secret_values,
        )

    @property
    def allows_scheduling_annotations(self) -> bool:
        """Whether annotations override policies by default; ConfigurationError for an unknown value."""
        return _is_first("scheduling-annotations", self.scheduling_annotations, ENABLED, DISABLED)

    @property
    def cadence(self) -> Cadence:
        """When members are probed; ConfigurationError for a value that is out of range."""
        if min(self.health_period_s, self.health_timeout_s) <= 0:
            raise ConfigurationError("health-period-s and health-timeout-s must be above 0")
        return Cadence(period_s=self.health_period_s, timeout_s=self.health_timeout_s)

    @property
    def damping(self) -> Damping:
        """When changes of health are published; ConfigurationError for a value that is out of range."""
        if min(self.health_failures, self.health_recoveries) < 1:
            raise ConfigurationError("health-failures and health-recoveries must be at least 1")
        if min(self.health_threshold_s, self.health_recovery_s) < 0:
            raise ConfigurationError("health-threshold-s and health-recovery-s must not be negative")
        return Damping(
            failures_min=self.health_failures,
            failure_s=self.health_threshold_s,
            recoveries_min=self.health_recoveries,
            recovery_s=self.health_recovery_s,
        )

    @property
    def units(self) -> UnitOptions:
        """Options of scheduling units; ConfigurationError for a value that is unknown or out of range."""
        if self.failover_toleration_s < 0:
            raise ConfigurationError("failover-toleration-s must not be negative")
        return UnitOptions(
            _is_first("scheduling-requests", self.scheduling_requests, ALL_REQUESTS, GPU_REQUESTS),
            self.failover_toleration_s,
        )

    @property
    def gate_networks(self) -> tuple[Network, ...]:
        """The networks that gates of rollouts and remedies may reach; ConfigurationError."""
        return parse_networks(self.gate_allowed_networks, setting="FEDERATION_GATE_ALLOWED_NETWORKS")

    @property
    def cluster_rates(self) -> RateOptions:
        """The source of clusters' rates; ConfigurationError for one that cannot work."""
        return to_rate_options(self.cluster_rates_url, self.cluster_rates_interval_s)

    @property
    def guard(self) -> GuardOptions:
        """The guard's limits; ConfigurationError for one that is out of range."""
        if not 0 <= self.guard_share <= 1:
            raise ConfigurationError(f"guard-share: {self.guard_share:g} is not between 0 and 1")
        if self.guard_count < 0 or self.guard_window_s <= 0:
            raise ConfigurationError("guard-count must not be negative, and guard-window-s must be above 0")
        return GuardOptions(self.guard_share, self.guard_count, self.guard_window_s)

    @property
    def failover(self) -> FailoverOptions:
        """The limits of failover and fail-back; ConfigurationError for one that is out of range."""
        for name, share in (
            ("failover-namespace-share", self.failover_namespace_share),
            ("failover-halt-share", self.failover_halt_share),
        ):
            if not 0 <= share <= 1:
                raise ConfigurationError(f"{name}: {share:g} is not between 0 and 1")
        if self.failover_replicas_per_minute < 0:
            raise ConfigurationError("failover-replicas-per-minute must not be negative")
        if min(self.failover_settle_s, self.failback_stable_s, self.failback_interval_s) < 0:
            raise ConfigurationError(
                "failover-settle-s, failback-stable-s and failback-interval-s must not be negative"
            )
        return FailoverOptions(
            HaltOptions(
                self.failover_halt_share, 2 * self.health_period_s + self.health_timeout_s, self.failover_settle_s
            ),
            PaceOptions(self.failover_replicas_per_minute, self.failover_namespace_share),
            self.failback_stable_s,
            self.failback_interval_s,
        )

    @property
    def holdout(self) -> HoldoutOptions:
        """How long flapping clusters are held out; ConfigurationError for a value that is out of range."""
        if self.failover_holdout_s < 0 or self.failover_holdout_s_max <= 0:
            raise ConfigurationError("failover-holdout-s must not be negative, failover-holdout-s-max must be above 0")
        return HoldoutOptions(self.failover_holdout_s, self.failover_holdout_s_max, self.failover_holdout_s_max)

    @property
    def writes_kubeadmiral_triggers(self) -> bool:
        """Whether triggers are written in KubeAdmiral's format; ConfigurationError for an unknown value."""
        return not _is_first("scheduling-triggers", self.scheduling_triggers, SHORT_TRIGGERS, KUBEADMIRAL_TRIGGERS)

    @property
    def oidc(self) -> OIDCOptions | None:
        """The trusted OIDC issuer, None without one; ConfigurationError names the wrong setting."""
        if not self.oidc_issuer_url:
            if self.oidc_client_id:
                raise ConfigurationError("oidc-client-id is set without oidc-issuer-url")
            return None
        return OIDCOptions(
            self.oidc_issuer_url,
            self.oidc_client_id,
            username_claim=self.oidc_username_claim,
            username_prefix=self.oidc_username_prefix,
            groups_claim=self.oidc_groups_claim,
            groups_prefix=self.oidc_groups_prefix,
            required_claims=to_required_claims(self.oidc_required_claim),
            ca_file=Path(self.oidc_ca_file) if self.oidc_ca_file else None,
            signing_algs=self.oidc_signing_algs,
        )

    @property
    def oidc_login(self) -> OIDCLoginOptions | None:
        """As `to_login_options`."""
        return to_login_options(self.oidc, self.oidc_scopes, self.oidc_client_secret_file)

    @property
    def audit(self) -> AuditOptions | None:
        """The audit log's options, None without one; ConfigurationError names the wrong setting."""
        log_path = self.audit_log_path or str(self.directory / "audit.log")
        sizes = (self.audit_log_maxsize, self.audit_log_maxbackup)
        if not self.audit_policy_file and self.audit_log_path:
            raise ConfigurationError("audit-log-path is set without audit-policy-file: nothing would be recorded")
        redaction = (UNAUDITED_RESOURCES, without_secret_values)
        return to_audit_options(self.audit_policy_file, log_path, *sizes, self.audit_log_mode, *redaction)


_OTHER_VARIABLES = {"otlp_endpoint": ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")}
"""Variables of other projects, which count after ours."""


def from_environment(overrides: Mapping[str, object], environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings: `overrides` (None and [] mean not given), then FEDERATION_<FIELD>, then the default.

    The endpoint of traces is also read from OpenTelemetry's variables. A list in one text has its entries
    separated by commas. ConfigurationError names the variable of a malformed value.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {}
    for field in fields(Settings):
        given = overrides.get(field.name)
        variables = (f"FEDERATION_{field.name.upper()}", *_OTHER_VARIABLES.get(field.name, ()))
        text = next((environ[name] for name in variables if name in environ), None)
        found = text if given is None or given == [] else given
        if found is not None:
            values[field.name] = to_value(field.name, field.type, found) if isinstance(found, (str, list)) else found
    return Settings(**values)  # type: ignore[arg-type]  # each value has its field's type by to_value or by the caller


def _is_first(name: str, value: str, first: str, second: str) -> bool:
    if value not in (first, second):
        raise ConfigurationError(f"{name}: {value!r} is neither {first} nor {second}")
    return value == first
