"""Status collection: one CollectedStatus per federated object shows fields of every member's copy (spec §11)."""
