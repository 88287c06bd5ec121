"""Every layer's options composed, and the one reader of environment and files that hold settings.

`Settings` is made by the command line (flags win), from `FEDERATION_*` environment variables, and from defaults, in
that order. Only `assembly` and `cli` know it; each layer knows its own options dataclass.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from federation.base.errors import ConfigurationError
from federation.scheduling.annotationswitch import DISABLED, ENABLED
from federation.scheduling.turn import UnitOptions
from federation.server.audit.options import AuditOptions, to_mode
from federation.server.oidcclaims import OIDCOptions, to_required_claims

ALL_REQUESTS, GPU_REQUESTS = "all", "gpus"
SHORT_TRIGGERS, KUBEADMIRAL_TRIGGERS = "short", "kubeadmiral"


@dataclass(frozen=True, slots=True)
class Settings:
    """How one control plane runs."""

    directory: Path
    """Where state, keys and kubeconfigs live."""
    host: str = "127.0.0.1"
    """Address to listen on; other than loopback only when told."""
    port: int = 7443
    """TCP port; 0 picks a free one."""
    store_url: str = ""
    """SQLAlchemy URL of the store; empty: SQLite in `directory`."""
    requests_in_flight_max: int = 600
    """Requests to this API at the same time, watches and those of system:masters left out."""
    watches_max: int = 10_000
    """Watches of this API at the same time."""
    member_requests_in_flight_max: int = 16
    """Requests to one member at the same time."""
    member_request_timeout_s: float = 10.0
    """Deadline of one request to a member."""
    health_period_s: float = 10.0
    """Between two health probes of a member."""
    health_threshold_s: float = 30.0
    """How long a changed observation must last before it is published."""
    namespace_exclude_regexp: str = ""
    """Namespaces that are not propagated automatically, besides the built-in ones."""

    scheduling_annotations: str = "enabled"
    """Whether annotations on objects override their policies where the namespace does not say: enabled or disabled."""

    scheduling_requests: str = ALL_REQUESTS
    """Which requests of pods count for scheduling: all, or gpus only, as in KubeAdmiral."""
    scheduling_triggers: str = SHORT_TRIGGERS
    """How objects note what they were decided by: short, or kubeadmiral for its form; both are understood."""

    decisions_age_days_max: float = 14.0
    """How long a scheduling decision can be asked for (`fedctl why`); the newest of an object is kept longer."""
    decisions_per_object_max: int = 20
    """How many decisions of one object are kept."""
    decisions_max: int = 50_000
    """How many decisions are kept altogether, about 200 MB at 4 kB of explanation each."""

    oidc_issuer_url: str = ""
    """OIDC issuer whose ID tokens are accepted as bearer tokens; empty: none. The names are kube-apiserver's flags."""
    oidc_client_id: str = ""
    """The audience that ID tokens must have."""
    oidc_username_claim: str = "sub"
    oidc_username_prefix: str = ""
    """Empty: the issuer's URL and `#`, unless the claim is `email`; `-`: none."""
    oidc_groups_claim: str = ""
    oidc_groups_prefix: str = ""
    oidc_required_claim: tuple[str, ...] = ()
    """key=value entries that ID tokens must hold."""
    oidc_ca_file: str = ""
    """PEM file to verify the issuer's certificate with; empty: the system's authorities."""
    oidc_signing_algs: tuple[str, ...] = ("RS256",)

    audit_policy_file: str = ""
    """audit.k8s.io/v1 Policy that says what is recorded of requests; empty: nothing is."""
    audit_log_path: str = ""
    """Where audit events go, one line of JSON each; `-` is standard output, empty is `audit.log` in `directory`."""
    audit_log_maxsize: int = 100
    """MiB after which the file is rotated."""
    audit_log_maxbackup: int = 10
    """How many rotated files are kept."""
    audit_log_mode: str = "batch"
    """batch: what cannot be written in time is dropped and counted; blocking: requests wait instead."""

    @property
    def database_url(self) -> str:
        """The store's URL with the default filled in."""
        return self.store_url or f"sqlite:///{self.directory / 'state.db'}"

    @property
    def allows_scheduling_annotations(self) -> bool:
        """Whether annotations override policies by default; ConfigurationError for any other value."""
        return _is_first("scheduling-annotations", self.scheduling_annotations, ENABLED, DISABLED)

    @property
    def units(self) -> UnitOptions:
        """How the scheduler looks at objects; ConfigurationError for what it does not know."""
        return UnitOptions(
            counts_cpu_and_memory=_is_first("scheduling-requests", self.scheduling_requests, ALL_REQUESTS, GPU_REQUESTS)
        )

    @property
    def writes_kubeadmiral_triggers(self) -> bool:
        """Whether triggers are written as KubeAdmiral does; ConfigurationError for a form that there is not."""
        return not _is_first("scheduling-triggers", self.scheduling_triggers, SHORT_TRIGGERS, KUBEADMIRAL_TRIGGERS)

    @property
    def oidc(self) -> OIDCOptions | None:
        """The trusted OIDC issuer; ConfigurationError names what is wrong with it."""
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
    def audit(self) -> AuditOptions | None:
        """What to record of requests; ConfigurationError names what is wrong with it."""
        if not self.audit_policy_file:
            if self.audit_log_path:
                raise ConfigurationError(
                    "audit-log-path is set without audit-policy-file, so nothing would be recorded"
                )
            return None
        return AuditOptions(
            Path(self.audit_policy_file),
            self.audit_log_path or str(self.directory / "audit.log"),
            file_bytes_max=self.audit_log_maxsize * 1024 * 1024,
            backups_max=self.audit_log_maxbackup,
            mode=to_mode(self.audit_log_mode),
        )


def from_environment(overrides: Mapping[str, object], environ: Mapping[str, str] | None = None) -> Settings:
    """Return settings: `overrides` (None or an empty list means not given), then FEDERATION_<FIELD>, then the default.

    A list as one text, in a variable or an override, separates its entries by commas.
    ConfigurationError names the variable when its value is not of the field's type.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {}
    for field in fields(Settings):
        given = overrides.get(field.name)
        text = environ.get(f"FEDERATION_{field.name.upper()}")
        if given is not None and given != []:
            values[field.name] = _convert(field.name, field.type, given) if isinstance(given, (str, list)) else given
        elif text is not None:
            values[field.name] = _convert(field.name, field.type, text)
    return Settings(**values)  # type: ignore[arg-type]  # each value has its field's type by _convert or by the caller


def _is_first(name: str, value: str, first: str, second: str) -> bool:
    if value not in (first, second):
        raise ConfigurationError(f"{name}: {value!r} is neither {first} nor {second}")
    return value == first


def _convert(name: str, kind: object, text: str | list[str]) -> object:
    if isinstance(text, list):
        return tuple(text)
    try:
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ConfigurationError(f"FEDERATION_{name.upper()}={text!r} is not {expected}") from None
    if kind == tuple[str, ...]:
        return tuple(entry.strip() for entry in text.split(",") if entry.strip())
    return Path(text) if kind is Path else text
