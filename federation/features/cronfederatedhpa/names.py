"""The wire names of CronFederatedHPAs."""

# Event reasons of CronFederatedHPAs
EVENT_CRON_RULE_APPLIED = "CronRuleApplied"
EVENT_CRON_RULE_FAILED = "CronRuleFailed"
