"""HorizontalPodAutoscalers that scale a target by the metrics of its pods (docs/reference/autoscaling.md).

It runs inside a simulated member and on the host (`features/autoscaling`). `controller.py` has the loop, `reconcile.py`
the steps for one autoscaler, and `scaletargets.py` the interface to targets and their pods. `planning/autoscaling`
decides.
"""
