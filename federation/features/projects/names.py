"""The wire names of projects."""

PROJECT = "federation.kubeadmiral.io/project"
"""Label of what a Project makes, and of its namespaces, with its name. It only shows; the Project's spec decides."""
PROJECT_MANAGER = "federation-project"
"""The field manager of what a Project makes."""

# The condition of a Project, and its reasons
READY = "Ready"
REASON_APPLIED = "Applied"
REASON_FORBIDDEN = "Forbidden"
REASON_REFUSED = "Refused"
REASON_TAKEN = "NamespaceTaken"
REASON_OTHER_HOST = "MembersNotGranted"
EVENT_PROJECT_REFUSED = "ProjectRefused"
