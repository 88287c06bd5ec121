"""Names of scheduling triggers and deferred reasons in words, for people. Pure.

`triggers.py` compares them. The names are repeated here, so that commands which print them do not import the scheduler;
a test compares both.
"""

from collections.abc import Iterable


def describe_triggers(changed: Iterable[str]) -> str:
    """Return a description of the changed triggers; an unknown one, of another version, is its own name."""
    return ", ".join(dict.fromkeys(TRIGGERS_IN_WORDS.get(name, name) for name in changed))


def describe_deferral(reasons: str) -> str:
    """Return a description of deferred reasons; any other text unchanged.

    `clusterJoined:false` becomes "a cluster joined; the policy does not follow that (rescheduleWhen: clusterJoined)".
    """
    parts = reasons.split("; ")
    if len(parts) == 1 and parts[0] in _NEVER_IN_WORDS:
        return _NEVER_IN_WORDS[parts[0]]
    fields = [part.removesuffix(":false") for part in parts]
    if not all(field in _DEFERRALS_IN_WORDS for field in fields):
        return reasons
    happened = " and ".join(_DEFERRALS_IN_WORDS[field] for field in fields)
    return f"{happened}; the policy does not follow that (rescheduleWhen: {', '.join(fields)})"


TRIGGERS_IN_WORDS = {
    "autoMigrationInfo": "what members can run",
    "clusterAPIResourceTypesHashes": "kinds that clusters serve",
    "clusterLabelsHashes": "labels of clusters",
    "clusterTaintsHashes": "taints of clusters",
    "clustersAvoided": "clusters in which it is unhealthy",
    "clustersLeft": "clusters that left its project",
    "clusters": "the set of clusters",
    "controlAnnotationsHash": "what other workloads and members need",
    "ignoredPlugins": "a plugin that was ignored may answer again",
    "partnersAway": "workloads that it must be together with left its clusters",
    "pluginFieldsHash": "labels and annotations that plugins use",
    "policyContentHash": "policy",
    "policyName": "policy",
    "profileHash": "profile",
    "replicaCount": "replicas",
    "tolerationsEnded": "the end of a toleration, or the return of a cluster",
    "resourceRequest": "resource requests",
    "schedulingAnnotationsHash": "scheduling annotations",
    "workloadSpreadHash": "WorkloadSpread",
}
_DEFERRALS_IN_WORDS = {
    "policyContentChanged": "the policy or its profile changed",
    "clusterLabelsChanged": "labels of clusters changed",
    "clusterAPIResourcesChanged": "the kinds that clusters serve changed",
    "clusterJoined": "a cluster joined",
}
_NEVER_IN_WORDS = {
    "finished": "it has finished in all of its clusters, and would run again elsewhere",
    "disableRescheduling:true": "the policy never moves what is placed (disableRescheduling: true)",
    "rescheduleWhen:nil": "the policy follows only changes of the object (no rescheduleWhen)",
}
