"""Options of requests and of the registry, and the result of a list: plain data at the registry's edge.

The server builds request options from query strings, the in-process client from keyword arguments. They live for one
request. Read `registry/registry.py` for the verbs that take them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.jsonsize import VALUES_MAX

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

Requester = Callable[[], dict[str, Any]]
"""Returns the requester's UserInfo. Called only when admission needs it."""


def own_user() -> dict[str, Any]:
    """Return the UserInfo of in-process clients: this process, with every right.

    Admission plugins recognise these clients by this function, not by the name, so that no user can pass for one.
    """
    return {"username": "system:apiserver", "groups": ["system:masters", "system:authenticated"]}


def sees_all(_value: bytes) -> None:
    """Accept every object."""


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Limits and intervals of the registry."""

    bookmark_interval_s: float = 60.0
    """How often a watch that allows bookmarks gets one."""
    event_ttl_s: float = 3600.0
    """How long an Event lives after its last write, as in kube-apiserver."""
    event_sweep_interval_s: float = 30.0
    """How often expired Events are removed."""
    list_limit_max: int = 0
    """The largest page that is served (0: no limit)."""
    object_values_max: int = VALUES_MAX
    """Keys and list items of one object, besides its managed fields."""
    object_bytes_max: int = 3 * 1024 * 1024
    """Stored bytes of one object that requests may write, with its managed fields: those of the largest body. Patches
    and further field managers would grow an object without end. etcd accepts 1.5 MiB."""
    label_cache_entries: int = 10_000
    """How many parsed label sets are cached for selectors."""
    service_network: str = "10.96.0.0/12"
    """The network of Services' clusterIPs."""
    service_network_ipv6: str = "fd00:10:96::/112"
    """The network of their addresses of the second family."""
    node_ports: tuple[int, int] = (30000, 32767)
    """The inclusive range of node ports."""
    system_namespaces: tuple[str, ...] = SYSTEM_NAMESPACES
    """Namespaces that are created at start."""
    admission_expressions_s_max: float = 1.0
    """How long the CEL expressions of one admission policy may take for one request."""
    namespace_bytes_max: int = 256 * 1024 * 1024
    """Stored bytes of one namespace beyond which requests may not add to it (0: no limit). A ResourceQuota's `bytes`
    limits one namespace further. The server's own writes and those of system:masters are counted and never refused.
    """
    quota_sync_interval_s: float = 300.0
    """How often the usage in ResourceQuotas is compared with the stored objects, as in kube-controller-manager."""
    quota_bytes_interval_s: float = 5.0
    """How often stored bytes are written to the status of ResourceQuotas that limit them, and to the metrics."""
    gc_interval_s: float = 30.0
    """How often the garbage collector retries owner references that it could not resolve."""
    collects_pods: bool = False
    """Whether deleted pods are removed whose node does not exist here: no kubelet ends their grace period."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Selection, paging and start of a list or watch, named like Kubernetes' query parameters."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    """True starts a watch with the existing objects, False without; None leaves it to the resourceVersion."""
    timeout_s: float = 0
    """0: the default. A watch with a negative timeout ends at once."""
    shown: Callable[[], frozenset[str]] | None = None
    """Returns the names of the objects that the requester may see at this moment; None for all."""
    hides: Callable[[bytes], bool] | None = None
    """Returns whether the requester may not see an object because of its content; None if he may see all."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Requester, field manager and strictness of a write; `warnings` collects the response's Warning headers."""

    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    field_validation: str = "Warn"
    is_patch: bool = False
    """Whether the request is a patch, whose unknown fields are reported in sorted order."""
    body_problems: tuple[str, ...] = ()
    """Unknown and duplicate fields of a patch's body, reported with the unknown fields of the patched object."""
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)
    user: Requester | None = None
    """For admission; None for the registry's own writes, which skip admission."""
    audit_annotations: dict[str, str] = field(default_factory=dict)
    """Collects admission's annotations for the request's audit event."""
    ignores_taken_name: bool = False
    """Whether a creation in a dry run only asks for validation and admission: neither the name nor quotas count."""
    is_plan: bool = False
    """Whether a dry run is for a plan: that the user may make it is known, also if it creates the object."""
    check_visible: Callable[[bytes], None] = sees_all
    """Raises Forbidden for an object that the requester may not see: he must not change it either, because a patch
    could copy what is in it to another place, or test it."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Propagation ("", Background, Foreground, Orphan), grace period and preconditions of a deletion."""

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
    """One page: object bytes in key order, their revision, and the token of the next page.

    A list that several servers answer has a text instead of a revision.
    """

    items: list[bytes]
    resource_version: int | str
    continue_token: str = ""
    remaining: int = 0
