"""Facts that several commands read from a host: its policies, and the access modes of its claims."""

from collections.abc import Sequence

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS
from federation.client.client import Client
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import compile_valid


async def read_policies(host: Client) -> PolicyIndex:
    """Return the policies that are valid."""
    found = PolicyIndex()
    for kind in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES):
        for policy in compile_valid((await host.list(kind)).items):
            found.put(policy)
    return found


async def read_access_modes(host: Client) -> dict[tuple[str, str], Sequence[str]]:
    """Return the access modes of the claims of the host by namespace and name."""
    claims = (await host.list(PERSISTENT_VOLUME_CLAIMS)).items
    return {
        (claim["metadata"]["namespace"], claim["metadata"]["name"]): (claim.get("spec") or {}).get("accessModes") or ()
        for claim in claims
    }
