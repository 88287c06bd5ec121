"""Rules of queues: admission, preemption within cohorts, estimated starts. Pure: `admission.py` first."""
