"""Before `fedctl import` and `fedctl adopt` take over an object of Karmada or KubeAdmiral: is that one off?

The user gives the kubeconfig of its API server, whose Leases and clusters tell, or says that it is gone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ClusterError, ConfigurationError, NotFound
from federation.apimachinery.resources import LEASES, Object, Resource
from federation.client.kubeconfig import load_kubeconfig
from federation.planning.federatedobject.previoushosts import (
    PreviousHost,
    delivered_by,
    remaining_finalizers,
    signs_of_life,
)
from federation.terminal.kubeconfigcontext import client_for

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

GONE = "gone"
_CLUSTERS = {PreviousHost.KUBEADMIRAL: FEDERATED_CLUSTERS}
"""The kind whose status shows that clusters are probed."""


async def refuse_running_host(objects: Sequence[Object], given: str) -> None:
    """Raise ConfigurationError if the control plane that delivered one of the members' objects may still run."""
    for live in objects:
        if left := remaining_finalizers(live):
            raise ConfigurationError(
                f"{live.get('kind')} {live['metadata']['name']} has the finalizer {left[0]} in the member: a control"
                " plane is not done with it; let that finish, or remove the finalizer there"
            )
    for host in sorted({host for live in objects if (host := delivered_by(live)) is not None}):
        if not given:
            raise ConfigurationError(
                f"{host} delivered it, and may still write it: stop its controllers, then give --previous-host FILE,"
                f" the kubeconfig of {host}'s API server, to check that; or --previous-host {GONE} if it is no more"
            )
        if given != GONE:
            await _check(host, Path(given))


async def _check(host: PreviousHost, kubeconfig: Path) -> None:
    async with client_for(load_kubeconfig(kubeconfig, "")) as client:
        try:
            leases = await _read(client, LEASES)
            clusters = await _read(client, _CLUSTERS[host]) if host in _CLUSTERS else []
        except ClusterError as error:
            raise ConfigurationError(
                f"--previous-host {kubeconfig}: {error}; start its API server, or give {GONE} if it is no more"
            ) from error
    if signs := signs_of_life(host, leases, clusters, SystemClock().now()):
        raise ConfigurationError(f"{host} still runs: {signs[0]}; stop its controllers and try again in a few minutes")
    print(f"{host} is off: no Lease of it is renewed" + (", and no cluster is probed" if host in _CLUSTERS else ""))


async def _read(client: "HTTPClient", resource: Resource) -> list[Object]:
    try:
        return list((await client.list(resource)).items)
    except NotFound:
        return []
