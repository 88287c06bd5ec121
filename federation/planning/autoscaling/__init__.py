"""From the metrics of pods to a number of replicas, as Kubernetes' HorizontalPodAutoscaler controller computes it.

`podmetrics.py` reads metrics, `replicacount.py` has the arithmetic for one metric, `recommendation.py` that for all
metrics of an autoscaler, and `scalelimits.py` the limits of `spec.behavior`. All of it is pure.
"""
