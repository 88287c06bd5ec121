"""Condition and event reasons of the override controller."""

# Event reasons of federate, override and namespace propagation
EVENT_INVALID_OVERRIDE_POLICY = "InvalidOverridePolicy"
EVENT_MATCH_OVERRIDE_POLICY_FAILED = "MatchOverridePolicyFailed"
EVENT_PARSE_OVERRIDE_POLICY_FAILED = "ParseOverridePolicyFailed"

# Reasons of the OverridesApplied condition
REASON_OVERRIDES_APPLIED = "OverridesApplied"
REASON_OVERRIDE_POLICY_NOT_FOUND = "OverridePolicyNotFound"
REASON_OVERRIDE_POLICY_INVALID = "OverridePolicyInvalid"

# Event reasons of the guard, on a PlacementHold and its cause
EVENT_OVERRIDES_HELD = "OverridesHeld"
