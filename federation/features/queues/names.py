"""The wire names of queues."""

# Event reasons on objects with a JobQueue
EVENT_ADMITTED = "Admitted"
EVENT_EVICTED = "Evicted"
