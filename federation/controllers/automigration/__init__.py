"""The automigration controller: notices replicas that a member cannot schedule, and when it can again (spec §13).

It writes what it believes on the federated object; the scheduler moves the replicas. The arithmetic is in
`planning/automigration`, the division in `planning/placement`.
"""
