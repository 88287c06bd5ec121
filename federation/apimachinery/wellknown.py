"""Kubernetes' own annotation keys, Secret types and groups that several packages use; ours are in `api/names.py`."""

LAST_APPLIED_CONFIGURATION = "kubectl.kubernetes.io/last-applied-configuration"
DEPLOYMENT_REVISION = "deployment.kubernetes.io/revision"
SERVICE_ACCOUNT_TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105  # a type, not a token
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Marks a claim or volume of which a controller, and not a user, chose the other one."""
OF_CONTROLLERS = frozenset(
    {
        DEPLOYMENT_REVISION,
        BOUND_BY_CONTROLLER,
        "deprecated.daemonset.template.generation",
        "pv.kubernetes.io/bind-completed",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/selected-node",
        "volume.kubernetes.io/storage-provisioner",
    }
)
"""Annotations in which the controllers of one cluster record their work on users' objects."""
AUTHENTICATED = "system:authenticated"
"""The group of every user who has proved who he is."""
LIMIT_RANGER = "kubernetes.io/limit-ranger"
"""Says what a LimitRange has set in a Pod; an annotation that admission writes."""
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
"""A label of every namespace, with its name."""
AUTOMANAGED_API = "kube-aggregator.kubernetes.io/automanaged"
"""Label of an APIService that its API server made for a group version of its own, and keeps or deletes."""
