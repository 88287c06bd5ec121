"""What is recorded of a move with volumes, and what its user asks for. Pure.

The scheduler's permit and the controller both write the record, each with the version that it read, so that of two
writes at once one is repeated with what the other one wrote.
"""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord, Time
from federation.features.volumemoves.names import VOLUME_MOVE

TIMEOUT_S = 3600
"""Default of the time that a workload may be stopped while its volumes are copied."""


class Phase(StrEnum):
    """The steps of a move; `transitions.py` has their order."""

    PREPARE = "Prepare"
    QUIESCE = "Quiesce"
    COPY = "Copy"
    STOP = "Stop"
    VERIFY = "Verify"
    READY = "Ready"
    SWITCHED = "Switched"
    UNDO = "Undo"
    FAILED = "Failed"
    KEPT = "Kept"


BEFORE_SWITCH = frozenset((Phase.PREPARE, Phase.QUIESCE, Phase.COPY, Phase.STOP, Phase.VERIFY, Phase.READY))
"""The steps at which the workload is placed in its old cluster, and can still be undone."""


class Way(StrEnum):
    """How data gets to another cluster."""

    SNAPSHOT = "Snapshot"
    VOLSYNC = "VolSync"
    OLD = "Old"
    """Nothing is copied: the target has the volumes that an earlier move left there."""


class OldVolumes(msgspec.Struct, frozen=True):
    """Claims, with their uids, that a workload left in a cluster."""

    cluster: str
    claims: dict[str, str]


class VolumeMove(msgspec.Struct, frozen=True, omit_defaults=True):
    """A move of one workload from one cluster to another one."""

    id: str
    """Names what the move makes in members."""
    source: str
    target: str
    phase: Phase
    since: Time
    """When the workload began to stop; before that, when the move began."""
    wish: str = ""
    """The annotation of the workload that asked for it."""
    way: str = ""
    claims: dict[str, str] = {}
    """The claims in the source, with their uids."""
    message: str = ""
    """What it waits for, or why it failed."""
    is_unclean: bool = False
    """Whether the source still has what the copy needed, because it did not answer when the move was undone."""
    kept: tuple[OldVolumes, ...] = ()
    """What this move and earlier ones left."""


class Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The annotation `move-volumes` of a workload."""

    method: Literal["", "Snapshot", "VolSync", "Old"] = ""
    """How to copy; "" takes VolSync if both clusters have it, else snapshots. Old starts on the volumes left there."""
    quiesce_url: Annotated[str, msgspec.Meta(pattern="^(https://.+)?$")] = msgspec.field(default="", name="quiesceURL")
    """Is posted to before the copy, which is made while the workload runs; "" stops the workload before the copy."""
    storage_classes: dict[str, str] = {}
    """The StorageClass in the target for one of the source."""
    snapshot_class: str = ""
    """The VolumeSnapshotClass in the source, "" for the default one."""
    service_type: Literal["ClusterIP", "LoadBalancer"] = "LoadBalancer"
    """How VolSync's destination is reached."""
    timeout_seconds: Annotated[int, msgspec.Meta(ge=60, le=7 * 86_400)] = TIMEOUT_S
    """How long the workload may be stopped before the move is undone."""
    requested: str = ""
    """Any text; a change of it tries again."""


RECORD = AnnotationRecord(VOLUME_MOVE, VolumeMove)
_WISH = msgspec.json.Decoder(Wish)


def read_wish(text: str) -> Wish:
    """Return the wish; ValueError says which field is wrong and what it may be."""
    try:
        return _WISH.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"annotation {names.MOVE_VOLUMES}: {error}; give JSON such as {{}}") from error
