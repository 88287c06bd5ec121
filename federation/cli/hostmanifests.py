"""`fedctl host-manifests`: what an administrator applies to an existing API server that is to be the host."""

import sys

import yaml

from federation.hosting.manifests import definitions, host_manifests
from federation.hosting.roles import HOST_RBAC


def host_manifests_command() -> None:
    """Print what an existing API server needs as host.

    Namespace, service account, its rights and the definitions, for hosts where `fedctl serve --host-kubeconfig` may not
    create them itself.

    \b
    fedctl host-manifests | kubectl apply --server-side --force-conflicts -f -
    """  # noqa: D301  # the backspace keeps lines apart in the help
    yaml.safe_dump_all([*host_manifests(HOST_RBAC.rules), *definitions()], sys.stdout, sort_keys=False)
