"""Wire names of KubeFed's kinds."""

# KubeFed's kinds
KUBEFED_MANAGER = "federation-kubefed"
"""The field manager of the objects that stand for federated objects of KubeFed."""
KUBEFED_PROPAGATION = "Propagation"
"""Condition type of a federated object of KubeFed."""
REASON_PLACEMENT_FAILED = "ComputePlacementFailed"
REASON_TEMPLATE_REFUSED = "TemplateRefused"
EVENT_KUBEFED_REFUSED = "DerivedObjectRefused"
