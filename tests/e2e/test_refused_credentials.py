"""A member that refuses our credentials keeps its pods, and gets nothing new until they are renewed."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.federation import Federation, eventually, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, NAMESPACE, POLICY, Member

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("waits for tolerations that must not end"),
    pytest.mark.xdist_group("refused-credentials"),
]
NAMES = ("frankfurt", "oslo")
DIVIDED = {**POLICY, "spec": {**POLICY["spec"], "schedulingMode": "Divide"}}


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    folder = tmp_path_factory.mktemp("refused")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FEDERATION_FAILOVER_TOLERATION_S", "1")
        environment.setenv("FEDERATION_FAILOVER_SETTLE_S", "1")
        running = start_serve(folder / "host")
    with closing(running), free_clusters(folder / "clusters", len(NAMES)) as kubeconfigs:
        running.kubectl.apply(DIVIDED)
        found = {name: Member(running, name, path) for name, path in zip(NAMES, kubeconfigs, strict=True)}
        for member in found.values():
            member.join(member.kubectl.kubeconfig)
        running.kubectl.apply({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 6}})
        eventually(lambda: _pods(found), lambda seen: sum(seen.values()) == 6 and all(seen.values()), what="6 pods")
        yield found


def _pods(members: dict[str, Member]) -> dict[str, int]:
    return {name: len(member.kubectl.api().names("pods")) for name, member in members.items()}


def _host(members: dict[str, Member]) -> Federation:
    return members["oslo"].fed


def _revoke_token(oslo: Member) -> None:
    oslo.kubectl("delete", "serviceaccount", "kubeadmiral-member", "-n", NAMESPACE)


def _renew_ca(oslo: Member) -> None:
    """Let the host know another CA than that of the member's certificate."""
    host = oslo.fed.kubectl
    other = host.json("config", "view", "--raw", "-o", "json")["clusters"][0]["cluster"]["certificate-authority-data"]
    patch = json.dumps({"data": {"certificate-authority-data": other}})
    host("patch", "secret", "oslo-credentials", "-n", NAMESPACE, "--type", "merge", "-p", patch)


@pytest.mark.parametrize(
    ("cause", "reason"), [(_revoke_token, "CredentialsRejected"), (_renew_ca, "CertificateNotTrusted")]
)
def test_pods_stay_where_they_are_when_a_member_refuses_us(members: dict[str, Member], cause: Any, reason: str) -> None:
    oslo, before = members["oslo"], _pods(members)
    cause(oslo)
    eventually(lambda: oslo.condition("Ready"), lambda seen: seen.get("reason") == reason, what=reason, timeout_s=120)
    eventually(lambda: oslo.fedctl("clusters"), lambda seen: "not-ready:NoSchedule" in seen, what="its taint")
    printed = oslo.fedctl("clusters")
    assert "NoExecute" not in printed
    assert "oslo is not lost, nothing leaves it" in printed
    assert "fedctl join --update-credentials oslo --kubeconfig FILE" in printed
    # A change that the other member gets shows that the scheduler has decided meanwhile.
    wanted = sum(before.values()) + 2
    _host(members).kubectl("scale", "deployment", "web", f"--replicas={wanted}")
    eventually(lambda: _pods(members), lambda seen: sum(seen.values()) >= wanted, what="two more pods")
    after = {**before, "frankfurt": before["frankfurt"] + 2}
    assert _pods(members) == after
    oslo.update_credentials(oslo.kubectl.kubeconfig)
    eventually(lambda: oslo.condition("Ready"), lambda seen: seen.get("status") == "True", what="ready again")
    assert _pods(members) == after
