"""The schedule controller: which clusters every federated object goes to, and with how many replicas (spec §5)."""
