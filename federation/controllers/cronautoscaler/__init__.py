"""CronFederatedHPAs → replicas of workloads and limits of autoscalers at set times (docs/reference/autoscaling.md):
`controller.py` watches, `reconcile.py` acts.
"""
