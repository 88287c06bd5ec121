"""Names of Kueue that the dispatcher reads and writes, and our own."""

from federation.api.resources import KUEUE_GROUP
from federation.apimachinery.resources import Resource

_GROUP, _VERSION = KUEUE_GROUP, "v1beta2"
WORKLOADS = Resource(_GROUP, _VERSION, "Workload", "workloads")
ADMISSION_CHECKS = Resource(_GROUP, _VERSION, "AdmissionCheck", "admissionchecks", namespaced=False)
MULTI_KUEUE_CONFIGS = Resource(_GROUP, _VERSION, "MultiKueueConfig", "multikueueconfigs", namespaced=False)
CLUSTER_QUEUES = Resource(_GROUP, _VERSION, "ClusterQueue", "clusterqueues", namespaced=False)
LOCAL_QUEUES = Resource(_GROUP, _VERSION, "LocalQueue", "localqueues")

MULTI_KUEUE = "kueue.x-k8s.io/multikueue"
"""The controller of admission checks that send Workloads to workers."""
KUEUE_ADMISSION = "kueue-admission"
"""The field manager of nominations: Kueue clears them as this manager when a worker has admitted a Workload."""
DISPATCHES = "federation.kubeadmiral.io/dispatches"
"""Label of a MultiKueueConfig: "true" if the federation nominates its clusters. Kueue's dispatcherName must say so."""

EVENT_NOMINATED = "ClusterNominated"
EVENT_NOT_NOMINATED = "NoClusterNominated"
