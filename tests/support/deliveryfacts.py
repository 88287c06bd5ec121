"""Facts of the delivery of one object to one cluster, for tests of the decision: named values of each dimension.

`combinations` yields facts by a name that says every value. `NOW` is the time of all facts.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.delivery.rules.content import Content, Write
from federation.delivery.rules.facts import CONFIRMATION, END, SCALER, Facts, Held, Hold, Pause
from federation.delivery.rules.memberrecord import (
    NOTHING_KNOWN,
    Failure,
    MemberKey,
    MemberRecord,
    Scaler,
    Sent,
    State,
)
from federation.delivery.rules.plan import (
    ABSENT_OBJECT,
    CLEAR_SIGHT,
    UNKNOWN_OBJECT,
    ClusterState,
    ObservedObject,
    Removal,
    Sight,
)
from federation.delivery.rules.status import ClusterStatus
from federation.planning.failover.application import PurgeMode
from federation.planning.rendering.memberobject import Rendered
from federation.planning.rendering.verdicts import Outcome, Verdict
from federation.planning.status.delivery import Drift
from federation.planning.steps.steps import Step, Unobserved
from federation.planning.steps.strategy import Limits

NOW = 1000.0
KEY = MemberKey("m1", DEPLOYMENTS, "default", "web")
HASH, OTHER_HASH = "hash", "other"
LIVE: Object = {"metadata": {"name": "web", "uid": "u1", "resourceVersion": "10", "generation": 3}}
SCALED: Object = {"metadata": {**LIVE["metadata"], "managedFields": [{"subresource": "scale", "manager": "hpa"}]}}
_DRIFT = Drift(["spec.replicas"], "eve", "Update", "", 6, "", "", "2026-01-01T00:01:00Z")
_WAIT = (ClusterStatus.WAITING_FOR_REPLICAS, "it waits")

CLUSTERS = {
    "ready": ClusterState("m1"),
    "silent": ClusterState("m1", ready=False),
    "leaving": ClusterState("m1", terminating=True),
    "cascading": ClusterState("m1", terminating=True, cascading_delete=True),
    "staying with cascade": ClusterState("m1", cascading_delete=True),
    "without finalizer": ClusterState("m1", has_finalizer=False),
}
OBJECTS: dict[str, tuple[ObservedObject, Object | None]] = {
    "absent": (ABSENT_OBJECT, None),
    "unknown": (UNKNOWN_OBJECT, None),
    "present": (ObservedObject(exists=True), LIVE),
    "scaled": (ObservedObject(exists=True), SCALED),
    "going": (ObservedObject(exists=True, terminating=True), LIVE),
    "colliding": (ObservedObject(exists=True, derived_service_mismatch=True), None),
}
SIGHTS = {
    "clear": CLEAR_SIGHT,
    "not served": Sight(is_served=False),
    "unseen for long": Sight(unseen_s=20.0),
    "not listable": Sight(unseen_s=20.0, failure="no list"),
}
USES: dict[str, dict[str, Any]] = {
    "placed": {"is_selected": True, "is_recorded": True},
    "new": {"is_selected": True, "is_published": False},
    "unplaced": {"is_recorded": True},
    "kept": {"is_recorded": True, "is_kept": True},
    "old membership": {"is_recorded": True, "objection": "no decision since the cluster joined has taken it away"},
    "old deletion": {"is_deleted": True, "is_recorded": True, "owner": "f1", "objection": "deleted before the join"},
    "departing": {"is_recorded": True, "step": Step(2), "wait": _WAIT},
    "created later": {"is_selected": True, "step": Step(0), "wait": _WAIT},
    "deleted": {"is_deleted": True, "is_recorded": True, "owner": "f1"},
    "released": {"is_deleted": True, "is_recorded": True, "owner": "f1", "removal": Removal.ORPHAN},
    "last look": {"is_deleted": True, "is_recorded": True, "owner": "f1", "is_last_look": True},
    "confirmed": {"is_deleted": True, "is_recorded": True, "owner": "f1", "is_last_look": True, "is_absent": True},
    "old copy": {"is_recorded": True, "purge": PurgeMode.NEVER},
    "old copy for now": {"is_recorded": True, "purge": PurgeMode.GRACIOUSLY},
    "old copy first": {"is_recorded": True, "purge": PurgeMode.DIRECTLY},
    "removed first": {"is_selected": True, "is_published": False, "waits_for_removal": "m2"},
    "finished": {"is_selected": True, "is_recorded": True, "finished": {"run": "1"}},
    "started": {"is_selected": True, "is_recorded": True, "started": {"run": "1", "uid": "u0"}},
}


def _failed(digest: str, *, is_due: bool = False) -> MemberRecord:
    retry_at_s = NOW - 1 if is_due else NOW + 5
    return MemberRecord(failure=Failure(ClusterStatus.CREATION_FAILED, "no", digest, 1, retry_at_s))


_SENT = Sent(Unobserved(1, 2, Limits(0, 0)), OTHER_HASH)
RECORDS: dict[str, MemberRecord] = {
    "nothing": NOTHING_KNOWN,
    "written": MemberRecord(State.WRITTEN, written=LIVE, since_s=NOW),
    "written before": MemberRecord(State.WRITTEN, written=LIVE, since_s=NOW - 20),
    "unconfirmed": MemberRecord(State.UNCONFIRMED),
    "unconfirmed other": MemberRecord(State.UNCONFIRMED, sent=_SENT),
    "unconfirmed lately": _failed(CONFIRMATION)._replace(state=State.UNCONFIRMED, sent=_SENT),
    "deleted": MemberRecord(State.DELETED, deleted_uid="u1", since_s=NOW),
    "deleted before": MemberRecord(State.DELETED, deleted_uid="u1", since_s=NOW - 20),
    "gone": MemberRecord(State.GONE, owner="f1"),
    "lost": MemberRecord(State.LOST, lost_uid="u0"),
    "lost and seen": MemberRecord(State.LOST, lost_uid="u0", is_loss_seen=True),
    "not kept": MemberRecord(losses=1),
    "end asked": MemberRecord(end_asked="u0"),
    "end asked of another": MemberRecord(end_asked="u9"),
    "end unanswered": _failed(END),
    "failed": _failed(HASH),
    "failed before": _failed(HASH, is_due=True),
    "failed otherwise": _failed(OTHER_HASH),
    "removal failed": _failed("u1"),
    "confirmation failed": _failed(CONFIRMATION),
    "scaler": MemberRecord(scaler=Scaler("hpa", NOW + 100)),
    "scaler before": MemberRecord(scaler=Scaler("hpa", NOW - 1)),
    "scaler unanswered": _failed(SCALER)._replace(scaler=Scaler("hpa", NOW - 1)),
    "no scaler": MemberRecord(scaler=Scaler("", NOW + 5)),
    "look failed": _failed(SCALER),
}
_WRITE = Write(KEY, Rendered({}, HASH))
CONTENTS: dict[str, dict[str, Any]] = {
    "differs": {"find_content": lambda: Content(_WRITE)},
    "is as wanted": {"find_content": lambda: Content(_WRITE, is_as_wanted=True)},
    "cannot be rendered": {
        "find_content": lambda: Content(problem=(ClusterStatus.APPLY_OVERRIDES_FAILED, "no such path"))
    },
    "is a correction": {"find_content": lambda: Content(_WRITE, is_correction=True)},
    "has drifted": {
        "find_content": lambda: Content(_WRITE, is_correction=True),
        "find_drifted": lambda _: "changed in the cluster: spec.replicas",
    },
    "is fought over": {
        "find_content": lambda: Content(_WRITE, is_correction=True),
        "find_pause": lambda: Pause(30.0, _DRIFT),
    },
}
_REFUSED, _UNANSWERED = Verdict(Outcome.REFUSED, "no"), Verdict(Outcome.UNANSWERED, "no answer")
HOSTS: dict[str, dict[str, Any]] = {
    "admitted": {},
    "unasked": {"find_held": lambda: Held(None, is_open=True)},
    "refused": {"find_held": lambda: Held(_REFUSED, is_open=False, recheck_after_s=300.0)},
    "refused before": {"find_held": lambda: Held(_REFUSED, is_open=True)},
    "unanswered": {"find_held": lambda: Held(_UNANSWERED, is_open=False, recheck_after_s=1.0)},
    "without followers": {"find_missing": lambda _: Hold("waits for ConfigMap a", 1.0, True)},
    "frozen": {"freeze": Hold("ChangeFreeze sale holds", 60.0)},
    "suspended": {"suspension": Hold("DeliverySuspension web holds", 60.0)},
    "beyond quota": {"find_unpaid": lambda: "cpu"},
    "suspended without end": {"suspension": Hold("DeliverySuspension web holds", None)},
    "after an earlier object": {"find_earlier": lambda: "leftover-1"},
}
FLIGHTS = {"idle": False, "in flight": True}


def facts(
    cluster: str = "ready",
    use: str = "placed",
    obj: str = "present",
    record: str = "nothing",
    content: str = "differs",
    host: str = "admitted",
    flight: str = "idle",
    sight: str = "clear",
    **more: Any,
) -> Facts:
    """Return the facts of these values."""
    observed, live = OBJECTS[obj]
    settled = USES[use].get("wait") or (ClusterStatus.OK, "")
    given = {"is_scalable": True, "find_settled": lambda: settled, **USES[use], **CONTENTS[content], **HOSTS[host]}
    if use == "departing" and content not in ("differs", "is as wanted"):
        given |= CONTENTS["differs"]  # content of a departing cluster is what is there
    given |= {"now_s": NOW, "observed": observed, "live": live, "record": RECORDS[record], "sight": SIGHTS[sight]}
    return Facts(CLUSTERS[cluster], **{**given, "is_in_flight": FLIGHTS[flight], **more})


def combinations() -> Iterator[tuple[str, Facts]]:
    """Yield every case of the table: all of the cluster's, all of the record's, all of the content's."""
    for cluster, use, obj in product(CLUSTERS, USES, OBJECTS):
        if obj != "scaled":
            yield f"{cluster}: {use}, {obj}", facts(cluster, use, obj)
    for sight, use, obj in product(SIGHTS, USES, ("absent", "unknown", "present")):
        if sight == "not served" or (obj == "unknown" and sight != "clear"):
            yield f"{sight}: {use}, {obj}", facts("ready", use, obj, sight=sight, kind="v1 ConfigMap")
    uses = ("placed", "unplaced", "created later", "departing", "deleted", "last look", "started")
    for use, obj, record, flight in product(uses, ("absent", "present"), RECORDS, FLIGHTS):
        yield f"{use}, {obj}, record {record}, {flight}", facts("ready", use, obj, record, flight=flight)
    for use, obj in product(USES, ("absent", "unknown", "present", "going")):
        yield f"suspended: {use}, {obj}", facts("ready", use, obj, host="suspended")
    for record, content in product(RECORDS, CONTENTS):
        yield f"scaled, record {record}, content {content}", facts("ready", "placed", "scaled", record, content)
    for obj, content, host, flight in product(("absent", "present"), CONTENTS, HOSTS, FLIGHTS):
        name = f"placed, {obj}, content {content}, {host}, {flight}"
        yield name, facts("ready", "placed", obj, "nothing", content, host, flight)


def dimensions() -> Mapping[str, tuple[str, ...]]:
    """Return the values of each argument of `facts`."""
    tables = (("cluster", CLUSTERS), ("use", USES), ("obj", OBJECTS), ("record", RECORDS), ("content", CONTENTS))
    return {name: tuple(table) for name, table in (*tables, ("host", HOSTS), ("flight", FLIGHTS), ("sight", SIGHTS))}
