"""Reasons of the condition StatusAggregated."""

# Reasons of the StatusAggregated condition
REASON_STATUS_AGGREGATED = "StatusAggregated"
REASON_STATUS_RULE_FAILED = "StatusRuleFailed"
REASON_STATUS_REFUSED = "StatusRefused"
REASON_MEMBER_STATUS_INVALID = "MemberStatusInvalid"
