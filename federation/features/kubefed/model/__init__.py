"""Models of KubeFed's kinds: one module for the federated kinds, one for ReplicaSchedulingPreference."""
