"""Names that only the scheduler reads and writes."""

# Labels and annotations of the scheduler
SCHEDULING_ANNOTATIONS = "federation.kubeadmiral.io/scheduling-annotations"
"""Label of a Namespace: "disabled" if annotations on its objects must not override their policies, else "enabled"."""
IGNORED_PLUGINS = "federation.kubeadmiral.io/ignored-plugins"
"""On a federated object: comma list of the webhook plugins that failed and that its last decision ignored."""
REBALANCED = "federation.kubeadmiral.io/rebalanced"
"""On a federated object: the value of REBALANCE that the last complete decision has acted on."""
DECIDED_CHANGES = "federation.kubeadmiral.io/decided-changes"
"""On a federated object: JSON {object, policy}, the names of changes that its last decision knew."""

# JobQueues
QUEUE_ADMISSION = "federation.kubeadmiral.io/queue-admission"
"""On a federated object with a JobQueue: JSON, whether it may be placed and where (scheduling/jobqueues.py)."""
QUEUE_NAME = "federation.kubeadmiral.io/queue-name"
"""Label of an object: the JobQueue of its namespace in which it waits until it is admitted."""
KUEUE_QUEUE_NAME = "kueue.x-k8s.io/queue-name"
"""The same label of Kueue; it counts in namespaces that have JobQueues."""

# Reasons of the Scheduled condition; those of unsuccessful decisions are their outcomes (scheduling/engine.py)
REASON_AWAITS_DEFINITION = "AwaitsDefinition"
REASON_CLAIMS_NOT_KNOWN = "DeviceClaimsNotKnown"
REASON_FROZEN = "Frozen"
"""A ChangeFreeze holds its move."""
REASON_POLICY_NOT_FOUND = "PolicyNotFound"
REASON_PROFILE_NOT_FOUND = "ProfileNotFound"
REASON_SUSPENDED = "SchedulingSuspended"

# WorkloadSpreads and virtual nodes
UNSCHEDULABLE_SUBSETS = "federation.kubeadmiral.io/unschedulable-subsets"
"""On a federated workload: JSON {cluster: {subset: replicas}} of the subsets of a WorkloadSpread that have pods without
a node there, with the number of pods that have one. The scheduler gives such a subset no more replicas there."""
VIRTUAL_NODE_TYPE = ("type", "virtual-kubelet")
"""Label and value of nodes that are not machines: they take any number of pods."""
VIRTUAL_NODE_TAINT = "virtual-kubelet.io/provider"
"""Key of the taint that such nodes have."""
