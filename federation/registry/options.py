"""What a caller may say about one request, and what a list answers: the plain facts at the registry's edge.

The server makes them from query strings, the in-process client from keyword arguments. They live for one request.
Read `registry.py` next for the verbs that take them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from federation.api.names import SYSTEM_NAMESPACE

Requester = Callable[[], dict[str, Any]]
"""Makes the UserInfo of who asks, when somebody wants to know."""


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Limits and intervals of the registry itself."""

    bookmark_interval_s: float = 60.0
    """How often an idle watch that allows bookmarks is told how far it has come."""
    event_ttl_s: float = 3600.0
    """How long an Event lives after its last write, as in kube-apiserver."""
    event_sweep_interval_s: float = 30.0
    """How often expired Events are looked for."""
    write_attempts_max: int = 5
    """How often a write without a resourceVersion is tried again when another writer was faster."""
    list_limit_max: int = 0
    """The largest page that is served (0: as large as the caller asks)."""
    label_cache_entries: int = 10_000
    """How many parsed label sets are kept for selectors."""
    service_network: str = "10.96.0.0/12"
    """Where Services get their clusterIP from."""
    node_ports: tuple[int, int] = (30000, 32767)
    """The inclusive range of node ports."""
    system_namespaces: tuple[str, ...] = (
        "default",
        "kube-system",
        "kube-public",
        "kube-node-lease",
        SYSTEM_NAMESPACE,
    )
    """Namespaces that are made at start."""
    root_ca: str = ""
    """PEM text for the `kube-root-ca.crt` ConfigMap of every namespace ("": none is made)."""
    admission_expressions_s_max: float = 1.0
    """How long all expressions of one admission policy may take for one request."""
    gc_interval_s: float = 30.0
    """How often the garbage collector looks again at references that it could not judge."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Selection, paging and start of a list or watch; the words are those of the Kubernetes query parameters."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    """True begins a watch with what exists, False with what comes; None leaves it to the resourceVersion."""
    timeout_s: float = 0


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Who writes and how strictly; `warnings` collects texts for the Warning headers of the answer."""

    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    field_validation: str = "Warn"
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)
    user: Requester | None = None
    """For admission; None for the registry's own writes, which nobody is asked about."""
    audit_annotations: dict[str, str] = field(default_factory=dict)
    """Collects what admission adds to the request's audit event."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete: propagation ("", Background, Foreground, Orphan), grace period and preconditions."""

    propagation_policy: str = ""
    grace_period_s: int | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    orphan_dependents: bool | None = None
    warnings: list[str] = field(default_factory=list)
    user: Requester | None = None
    audit_annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListResult:
    """One page: object bytes in key order, the revision they are of, and how to go on."""

    items: list[bytes]
    resource_version: int
    continue_token: str = ""
    remaining: int = 0
