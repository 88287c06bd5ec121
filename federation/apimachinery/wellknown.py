"""Kubernetes' own annotation keys and Secret types that several packages use; ours are in `api/names.py`."""

LAST_APPLIED_CONFIGURATION = "kubectl.kubernetes.io/last-applied-configuration"
DEPLOYMENT_REVISION = "deployment.kubernetes.io/revision"
SERVICE_ACCOUNT_TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105  # a type, not a token
