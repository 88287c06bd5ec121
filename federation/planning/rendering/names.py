"""Reasons of the condition Admitted, and the annotation with the nodes of a queue's flavours."""

# Reasons of the Admitted condition; the first two are event reasons as well
REASON_ADMISSION_REFUSED = "AdmissionRefused"
REASON_ADMISSION_FAILED = "AdmissionFailed"
REASON_ADMITTED = "Admitted"
# Annotations
QUEUE_RELEASED = "federation.kubeadmiral.io/queue-released"
"""On a federated object with a JobQueue: "true" if its author left its suspension to the queue, else "false"."""
QUEUE_NODES = "federation.kubeadmiral.io/queue-nodes"
"""On a federated object with a JobQueue: JSON, the nodes of the flavours that it was admitted to, for its pods."""
