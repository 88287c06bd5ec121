"""Names that decide which objects are federated, and what a federated object records of its source."""

# Labels and annotations of what is federated
TEMPLATE_HISTORY_LABEL = "federation.kubeadmiral.io/template-history"
"""On ReplicaSets and ControllerRevisions of the host that record a pod template for `kubectl rollout undo`."""
OBSERVED_ANNOTATIONS = "federate.controller.kubeadmiral.io/observed-annotations"
OBSERVED_LABELS = "federate.controller.kubeadmiral.io/observed-labels"

# Objects that every Kubernetes cluster creates itself; they are not federated
BOOTSTRAPPING_LABEL = "kubernetes.io/bootstrapping"
ROOT_CA_CONFIGMAP = "kube-root-ca.crt"
DEFAULT_SERVICE_ACCOUNT = "default"
