"""Event reasons of preemption, on the workload that loses replicas and on the one that gets their room."""

EVENT_GIVES_WAY = "GivesWay"
EVENT_ROOM_AGAIN = "RoomAgain"
"""On the workload that lost replicas, when they may return."""
EVENT_PREEMPTS = "Preempts"
"""On the workload that others give way to."""

# Condition types
GAVE_WAY = "GaveWay"
"""Of a federated workload: whether replicas of it gave way to a workload of higher priority."""
