"""Event reasons of the automigration controller."""

# Event reasons of the automigration controller
EVENT_AUTO_MIGRATION_INFO_UPDATED = "AutoMigrationInfoUpdated"
