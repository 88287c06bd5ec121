"""The wire names of volumes that move."""

VOLUME_MOVE = "federation.kubeadmiral.io/volume-move"
"""On a federated object: JSON record of its move with its volumes. On a member's object: the move that made it."""
VOLUME_MOVE_CONTROLLER = "federation.kubeadmiral.io/volume-move-controller"
"""The owner of the overrides that stop a workload while its volumes are copied."""

# Reasons of the condition Scheduled
REASON_VOLUMES_MOVE = "VolumesMove"
REASON_VOLUMES_STAY = "VolumesStay"

# Event reasons
EVENT_VOLUMES_MOVE = "VolumesMove"
EVENT_VOLUMES_MOVED = "VolumesMoved"
EVENT_VOLUME_MOVE_UNDONE = "VolumeMoveUndone"
EVENT_OLD_VOLUMES_KEPT = "OldVolumesKept"
EVENT_OLD_VOLUMES_DELETED = "OldVolumesDeleted"
