"""How long `fedctl` waits for a member."""

from pathlib import Path
from typing import cast

from tests.support.apiserver import api_server

from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS
from federation.cli.members.fanout import find_members
from federation.client.http import HTTPClient
from federation.client.local import LocalClient

AT = "2026-01-01T00:00:00Z"


async def _join(client: LocalClient, name: str, ready: str) -> None:
    cluster = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": {"name": name}}
    spec = {"apiEndpoint": f"https://{name}", "secretRef": {"name": name}}
    await client.create(FEDERATED_CLUSTERS, {**cluster, "spec": spec})
    if ready:
        status = {
            "conditions": [
                {
                    "type": "Ready",
                    "status": ready,
                    "reason": "Test",
                    "message": "",
                    "lastTransitionTime": AT,
                    "lastProbeTime": AT,
                }
            ]
        }
        await client.patch(FEDERATED_CLUSTERS, name, {"status": status}, subresource="status")


def test_a_member_that_is_not_ready_gets_little_time_unless_the_user_says_how_much(tmp_path: Path) -> None:
    with api_server(tmp_path) as host:
        host.run(host.registry.install_crds(crd_manifests()))
        client = LocalClient(host.registry)
        for name, ready in (("far", "True"), ("lost", "Unknown"), ("new", "")):
            host.run(_join(client, name, ready))

        def patience(*wanted: str, given_s: float | None = None) -> dict[str, float]:
            members = host.run(find_members(cast("HTTPClient", client), wanted, given_s, ""))
            return {member.name: member.patience_s for member in members}

        assert patience() == {"far": 10, "lost": 2, "new": 10}
        assert patience("lost") == {"lost": 10}, "who names a member wants its answer"
        assert patience(given_s=0.3) == {"far": 0.3, "lost": 0.3, "new": 0.3}
