"""From facts about a federation to findings, each with what to do. Pure.

`fedctl doctor` collects the facts: readiness, metrics and objects of the host. A finding is an error when something
does not work or is about to stop, and a warning when somebody should look at it.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.filelimit import file_limit_problem, files_needed
from federation.planning.clusters.memberrights import UPDATE_ALL, lacks_rights
from federation.planning.diagnosis.actingobjects import Configurations, diagnose_configurations
from federation.planning.diagnosis.level import Level
from federation.planning.failover.halts import fault_of

DAY_S = 86_400.0
_SKEW_S = 5.0
"""Certificates are valid five minutes early, tokens not at all; Leases and times of objects are compared exactly."""
_SKEW_S_MAX = 60.0
_EXPIRY_S, _AUTHORITY_EXPIRY_S = 14 * DAY_S, 180 * DAY_S
_QUEUE_S = 60.0
_CAUSES_MAX = 10
_OPEN_FILES_SHARE_MAX = 0.8
MEMBER_VERSION_MIN, MEMBER_VERSION_MAX = (1, 30), (1, 36)
"""The first and the last Kubernetes version that members may have, as in README.md."""


class Finding(NamedTuple):
    """One line of the result; `remedy` is "" when nothing has to be done."""

    level: Level
    area: str
    text: str
    remedy: str = ""


class Sample(NamedTuple):
    """One value of a metric."""

    labels: Mapping[str, str]
    value: float


OF_METRICS, OF_CLUSTERS, OF_CONFIGURATIONS = "metrics", "clusters", "configurations"


@dataclass(frozen=True, slots=True)
class Facts:
    """Observations of the federation."""

    now: datetime
    client_version: str
    readiness: str
    """The text of `/readyz?verbose`."""
    samples: Mapping[str, Sequence[Sample]]
    """The host's metrics by name."""
    clusters: Sequence[Mapping[str, Any]] = ()
    configurations: Configurations = field(default_factory=dict)
    """The objects of the kinds that act on an API server."""
    type_configs: Sequence[Mapping[str, Any]] = ()
    """The FederatedTypeConfigs of the host."""
    leftovers: int = 0
    holds: int = 0
    causes: Sequence[Mapping[str, Any]] = ()
    """The causes of the problems of objects, as `/federation/v1/objects` counts them."""
    host_skew_s: float | None = None
    """How far the host's clock is ahead of this machine's."""
    missing: Sequence[str] = field(default=())
    """The resources that the user may not read."""
    unread: frozenset[str] = frozenset()
    """Those of `OF_METRICS`, `OF_CLUSTERS` and `OF_CONFIGURATIONS` that the user may not read."""
    failures: Sequence[str] = field(default=())
    """Errors of the host."""

    def values(self, metric: str) -> Iterator[tuple[str, float]]:
        """Yield the first label's value and the value of each series of a metric."""
        for sample in self.samples.get(metric, ()):
            yield next(iter(sample.labels.values()), ""), sample.value


def diagnose(facts: Facts) -> list[Finding]:
    """Return the findings, the worst first; one per area where nothing is wrong."""
    order = (Level.ERROR, Level.WARNING, Level.OK)
    found: list[Finding] = []
    for area, check in (
        ("host", _host),
        ("store", _store),
        ("certificates", _certificates),
        ("members", _members),
        ("objects", _delivery),
        ("admission", lambda facts: diagnose_configurations(facts.configurations)),
        ("controllers", _controllers),
        ("clocks", _clocks),
        ("versions", _versions),
    ):
        wrong = [Finding(level, area, text, remedy) for level, text, remedy in check(facts)]
        is_known = facts.unread.isdisjoint(_NEEDED.get(area, ()))
        found += wrong if wrong or not is_known else [Finding(Level.OK, area, _FINE[area])]
    found += [Finding(Level.WARNING, "access", text, "use a kubeconfig of an administrator") for text in facts.missing]
    return sorted(found, key=lambda finding: order.index(finding.level))


_NEEDED = {
    "store": {OF_METRICS},
    "certificates": {OF_METRICS, OF_CLUSTERS},
    "members": {OF_CLUSTERS},
    "objects": {OF_METRICS},
    "admission": {OF_CONFIGURATIONS},
    "controllers": {OF_METRICS},
    "clocks": {OF_METRICS},
    "versions": {OF_METRICS, OF_CLUSTERS},
}
"""The sources that must have been read before an area can be called free of problems."""
_FINE = {
    "host": "the API server is ready",
    "store": "no damage, no backlog",
    "certificates": "none expires soon",
    "members": "all are ready",
    "objects": "everything is delivered",
    "admission": "webhooks, policies and APIServices act where they should",
    "controllers": "no queue is old",
    "clocks": "they agree",
    "versions": "fedctl and the control plane are the same version, and those of the members are supported",
}
_Problems = Iterator[tuple[Level, str, str]]


def _host(facts: Facts) -> _Problems:
    for text in dict.fromkeys(facts.failures):
        yield Level.ERROR, text, "see the log of the `fedctl serve` that answers here"
    for line in facts.readiness.splitlines():
        if line.startswith("[-]"):
            yield Level.ERROR, line[3:], "the text names the cause; the log of `fedctl serve` has more"
        elif line.startswith("[!]"):
            yield Level.WARNING, line.removeprefix("[!]warning: "), ""
    yield from _open_files(facts)


def _open_files(facts: Facts) -> _Problems:
    remedy = "raise LimitNOFILE of the service, or `ulimit -n`, and restart the control plane"
    files_max = next((value for _, value in facts.values("process_max_fds")), math.inf)
    if problem := file_limit_problem(files_max, files_needed(len(facts.clusters))):
        yield Level.WARNING, problem, remedy
    for _, count in facts.values("process_open_fds"):
        if count > _OPEN_FILES_SHARE_MAX * files_max:
            yield Level.WARNING, f"{count:,.0f} of {files_max:,.0f} files are open", remedy


def _store(facts: Facts) -> _Problems:
    for _, count in facts.values("federation_store_damaged_entries"):
        if count:
            yield (
                Level.ERROR,
                f"damaged in the store: {to_count(count, 'object')}",
                "fedctl db check --dir DIR; docs/backup.md",
            )
    for _, count in facts.values("federation_store_pending_writes"):
        if count > 1_000:
            yield (
                Level.WARNING,
                f"{to_count(count, 'write')} wait for a commit",
                "the disk or the PostgreSQL server is slow",
            )


def _certificates(facts: Facts) -> _Problems:
    for name, left_s in facts.values("federation_certificate_expiry_seconds"):
        is_authority = name.endswith("ca")
        if left_s <= 0:
            yield (
                Level.ERROR,
                f"certificate {name} has expired",
                "restart the control plane, and copy DIR/kubeconfig again",
            )
        elif left_s < (_AUTHORITY_EXPIRY_S if is_authority else _EXPIRY_S):
            days = f"certificate {name} expires in {to_count(round(left_s / DAY_S), 'day')}"
            remedy = (
                "plan a new authority" if is_authority else "it should have been renewed: see the control plane's log"
            )
            yield Level.WARNING, days, remedy
    for cluster in facts.clusters:
        name, credential = cluster["metadata"]["name"], (cluster.get("status") or {}).get("credential") or {}
        expires = parse_rfc3339(credential.get("expires"))
        if expires is not None and expires <= facts.now:
            remedy = f"fedctl join --update-credentials {name} --kubeconfig FILE"
            yield Level.ERROR, f"the token for member {name} expired at {credential['expires']}", remedy


_OF_FAULTS = "as the message says; its pods run, nothing new is placed there, and nothing leaves it"
"""The remedy for a cluster that is not ready and not lost."""


def _members(facts: Facts) -> _Problems:
    if not facts.clusters and OF_CLUSTERS not in facts.unread:
        yield Level.WARNING, "no cluster has joined", "fedctl join NAME --kubeconfig FILE"
    reported = set()
    lacking = sum(map(lacks_rights, facts.clusters))
    stale = {cause["subject"]: cause["count"] for cause in facts.causes if cause["attention"] == "stale"}
    for cluster in facts.clusters:
        name, found = cluster["metadata"]["name"], (cluster.get("status") or {}).get("conditions")
        for type_, usual in (
            (names.CLUSTER_JOINED, "see the events of the FederatedCluster"),
            (names.CLUSTER_READY, "check that its API server answers, and its address and credentials"),
            (
                names.CLUSTER_AUTHORIZED,
                UPDATE_ALL if lacking > 1 else f"fedctl join --update-credentials {name} --kubeconfig FILE",
            ),
        ):
            condition = conditions.find(found, type_)
            if condition is None or condition.get("status") == "True":
                continue
            message = f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
            level = Level.WARNING if type_ == names.CLUSTER_AUTHORIZED else Level.ERROR
            remedy = _OF_FAULTS if type_ == names.CLUSTER_READY and fault_of(cluster) else usual
            behind = f"; last known state: {to_count(stale[name], 'object')}" if name in stale else ""
            reported.add(name)
            yield level, f"member {name}: {type_} is {condition.get('status')} ({message}){behind}", remedy
            break
    for name, is_open in facts.values("federation_client_circuit_open"):
        if is_open and name not in reported:  # a member that is not ready has the same cause
            yield (
                Level.WARNING,
                f"requests to member {name} fail at once after many failures",
                "they resume by themselves",
            )


def _delivery(facts: Facts) -> _Problems:
    states = dict(facts.values("federation_objects"))
    refusals = [cause for cause in facts.causes if cause["attention"] == "not-delivered"]
    for cause in refusals[:_CAUSES_MAX]:
        yield Level.ERROR, f"{cause['title']}: {to_count(cause['count'], 'object')}", _why(cause)
    if len(refusals) > _CAUSES_MAX:
        yield Level.ERROR, f"and {len(refusals) - _CAUSES_MAX} more causes of refusals", "fedctl why --failed"
    if (count := states.get("failing", 0)) and not refusals:
        yield Level.ERROR, f"{to_count(count, 'object')} refused by a cluster", "fedctl why --failed"
    for cause in (cause for cause in facts.causes if cause["attention"] == "not-ready"):
        yield Level.WARNING, f"{cause['title']}: {to_count(cause['count'], 'object')}", _why(cause)
    if count := states.get("unplaced", 0):
        yield Level.WARNING, f"no cluster was found for {to_count(count, 'object')}", "fedctl why KIND/NAME"
    for _, count in facts.values("federation_replicas_unplaced"):
        if count:
            yield Level.WARNING, f"no cluster has room for {to_count(count, 'replica')}", "fedctl why KIND/NAME"
    if facts.holds:
        yield Level.WARNING, f"waiting for approval: {to_count(facts.holds, 'change')}", "fedctl holds"
    if facts.leftovers:
        yield Level.WARNING, f"left in members: {to_count(facts.leftovers, 'object')}", "fedctl leftovers"


def _why(cause: Mapping[str, Any]) -> str:
    """Return the command that says more about the first object with the cause."""
    sample = next(iter(cause.get("samples") or ()), None)
    if sample is None:
        return "fedctl why KIND/NAME"
    where = f" -n {sample['namespace']}" if sample["namespace"] else ""
    return f"fedctl why {sample['kind'].lower()}/{sample['name']}{where}"


def _controllers(facts: Facts) -> _Problems:
    for queue, age_s in facts.values("federation_runtime_queue_oldest_seconds"):
        if age_s > _QUEUE_S:
            remedy = "give the process more CPU; see federation_runtime_workers_active"
            yield Level.WARNING, f"a key of {queue} waits for {age_s:.0f} s", remedy
    for task, count in facts.values("federation_base_task_restarts_total"):
        if count:
            yield (
                Level.WARNING,
                f"background task {task} failed {to_count(count, 'time')}",
                "the log has the traces; report them",
            )
    leaders = [value for _, value in facts.values("federation_runtime_leader")]
    if leaders and not any(leaders):
        yield Level.OK, "another process runs the controllers", ""


def _clocks(facts: Facts) -> _Problems:
    if facts.host_skew_s is not None and abs(facts.host_skew_s) > _SKEW_S:
        yield _skew("the host's clock", facts.host_skew_s, "this machine's")
    for name, skew_s in facts.values("federation_client_clock_skew_seconds"):
        if abs(skew_s) > _SKEW_S:
            yield _skew(f"the clock of member {name}", skew_s, "the host's")


def _skew(whose: str, skew_s: float, other: str) -> tuple[Level, str, str]:
    direction = "ahead of" if skew_s > 0 else "behind"
    level = Level.ERROR if abs(skew_s) > _SKEW_S_MAX else Level.WARNING
    return (
        level,
        f"{whose} is {abs(skew_s):.0f} s {direction} {other}",
        "synchronise the clocks, for example with chrony",
    )


def _versions(facts: Facts) -> _Problems:
    for config in facts.type_configs:
        current = conditions.find((config.get("status") or {}).get("conditions"), names.VERSION_CURRENT) or {}
        if current.get("status") == "False":
            is_read = current.get("reason") == names.REASON_VERSION_NOT_STORED
            text, _, remedy = str(current.get("message")).partition(": ")
            yield Level.WARNING if is_read else Level.ERROR, f"{config['metadata']['name']}: {text}", remedy
    for sample in facts.samples.get("federation_build_info", ()):
        if (version := sample.labels.get("version", "")) != facts.client_version:
            text = f"fedctl is {facts.client_version}, the control plane {version}"
            yield Level.WARNING, text, "install the same version here"
        if slow := sample.labels.get("slow_python", ""):
            text = f"the control plane runs on a Python {slow} that was built without profile-guided optimisation"
            remedy = "run it on a distribution's or uv's Python, or on one built with --enable-optimizations --with-lto"
            yield Level.WARNING, f"{text}: it needs up to half more CPU", remedy
    found: dict[tuple[int, int], str] = {}
    for cluster in facts.clusters:
        name, text = cluster["metadata"]["name"], (cluster.get("status") or {}).get("kubernetesVersion", "")
        if (minor := _to_minor(text)) is None:
            continue
        found[minor] = name
        if not MEMBER_VERSION_MIN <= minor <= MEMBER_VERSION_MAX:
            remedy = "upgrade the member" if minor < MEMBER_VERSION_MIN else "upgrade the control plane"
            supported = f"{_shown(MEMBER_VERSION_MIN)} to {_shown(MEMBER_VERSION_MAX)}"
            yield Level.WARNING, f"member {name} runs Kubernetes {text}; supported are {supported}", remedy
    if len(found) > 1:
        oldest, newest = min(found), max(found)
        text = f"members run Kubernetes {_shown(oldest)} ({found[oldest]}) to {_shown(newest)} ({found[newest]})"
        yield Level.OK, f"{text}; older ones ignore or refuse fields that they do not know", ""


def _to_minor(version: str) -> tuple[int, int] | None:
    """Return major and minor of a version like v1.34.2+build, None for another text."""
    found = re.match(r"v?(\d{1,3})\.(\d{1,3})(?!\d)", version)
    return (int(found[1]), int(found[2])) if found is not None else None


def _shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
