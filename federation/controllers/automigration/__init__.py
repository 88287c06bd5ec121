"""Auto-migration: detects replicas that a member cannot schedule, and members that can schedule them again.

It writes capacity estimates to the federated object; the scheduler moves the replicas. The arithmetic is in
`planning/automigration`, the division in `planning/placement`.

Reference: docs/reference/auto-migration.md.
"""
