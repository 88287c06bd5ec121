"""The rules of delivery: pure decisions about one object in one cluster, and its status."""
