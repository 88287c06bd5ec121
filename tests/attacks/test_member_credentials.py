"""The credentials of members: the host keeps no administrator's, rotation loses nothing, refusals leave nothing."""

import base64
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.federation import Federation, eventually, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, NAMESPACE, POLICY, ROLE, Member, assert_works
from tests.support.load import Load

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("fedctl join and kubectl"),
    pytest.mark.xdist_group("member-credentials"),
]


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with closing(start_serve(tmp_path_factory.mktemp("credentials") / "host")) as running:
        running.kubectl.apply(POLICY, DEPLOYMENT)
        yield running


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    with free_clusters(tmp_path_factory.mktemp("credentials") / "clusters", 2) as running:
        yield running


@pytest.fixture
def member(fed: Federation, clusters: list[Path]) -> Iterator[Member]:
    one = Member(fed, "frankfurt", clusters[0])
    yield one
    one.leave()


def accounts(member: Member) -> list[str]:
    names = member.kubectl("get", "sa", "-n", NAMESPACE, "-o", "name").split()
    return [name.removeprefix("serviceaccount/") for name in names if "kubeadmiral" in name]


def test_the_host_never_holds_the_bootstrap_credentials(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    user = member.document["users"][0]["user"]
    key = base64.b64decode(user["client-key-data"]).splitlines()[1]
    stored = b"".join(path.read_bytes() for path in sorted(member.fed.directory.rglob("state.db*")))
    assert b"frankfurt-credentials" in stored, "the right file"
    for text in (key, user["client-key-data"][40:80].encode(), base64.b64encode(key)):
        assert text not in stored


def test_given_credentials_in_a_declared_cluster_are_removed_after_the_join(member: Member) -> None:
    user = member.document["users"][0]["user"]
    cluster = member.document["clusters"][0]["cluster"]
    data = {
        "certificate-authority-data": cluster["certificate-authority-data"],
        "client-certificate-data": user["client-certificate-data"],
        "client-key-data": user["client-key-data"],
    }
    metadata = {"name": "frankfurt-credentials", "namespace": NAMESPACE}
    member.fed.kubectl.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data},
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "FederatedCluster",
            "metadata": {"name": "frankfurt"},
            "spec": {
                "apiEndpoint": cluster["server"],
                "secretRef": {"name": metadata["name"]},
                "useServiceAccount": True,
            },
        },
    )
    member.fed.kubectl("wait", "fcluster/frankfurt", "--for=condition=Ready", "--timeout=90s")
    assert_works(member)
    assert set(member.secret()) == {"certificate-authority-data", "service-account-token-data"}
    member.until_authorized("RightsSufficient")


def test_a_rotation_under_load_loses_nothing_and_revokes_the_old_token(member: Member, tmp_path: Path) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    old = member.as_account(tmp_path / "old")
    assert "deployment.apps/web" in old("get", "deployments", "-n", "default", "-o", "name")
    written: list[str] = []
    host = member.fed.kubectl
    requests = host.api()

    def write(index: int) -> None:
        requests.apply("configmaps", a_config_map(f"load-{index}"))
        written.append(f"load-{index}")

    with Load(write) as load:
        load.wait_for_more(1)
        for _ in range(2):
            output = member.update_credentials(member.kubectl.kubeconfig)
            assert "new credentials" in output
            load.wait_for_more(2)
    assert len(written) > 3, "there was a load"
    eventually(
        lambda: set(member.kubectl.api().names("configmaps")),
        lambda seen: set(written) <= seen,
        what="every written object in the member",
    )
    # The binding no longer names the old account; its token is rejected once the member's cache of tokens expires.
    assert old.run("get", "configmaps", "-n", "default").returncode != 0
    eventually(
        lambda: old.run("get", "configmaps", "-n", "default").stderr,
        lambda text: "Unauthorized" in text,
        pause_s=1,
        what="the old token rejected",
    )
    (account,) = accounts(member)
    status = eventually(
        lambda: host.api("").get("federatedclusters", "frankfurt")["status"]["credential"],
        lambda seen: seen["serviceAccount"] == account,
        what="the new account in the status",
    )
    assert status["expires"]
    for name in written:
        requests.delete("configmaps", name)


def a_config_map(name: str) -> dict[str, Any]:
    labels = {"kubeadmiral.io/propagation-policy-name": "everything"}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


def test_the_stored_credentials_suffice_for_a_new_token(member: Member) -> None:
    for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"):
        member.fed.kubectl("delete", "ftc", f"{plural}.rbac.authorization.k8s.io", "--ignore-not-found")
    member.join(member.kubectl.kubeconfig)
    before = member.secret()["service-account-token-data"]
    output = member.update_credentials()
    assert "the previous token expires: 20" in output
    assert member.secret()["service-account-token-data"] != before
    assert accounts(member) == ["kubeadmiral-member"]
    assert_works(member)


def test_another_cluster_is_refused_and_nothing_changes(member: Member, clusters: list[Path]) -> None:
    member.join(member.kubectl.kubeconfig)
    before = member.secret()
    refusal = member.update_credentials(clusters[1], check=False)
    assert len(refusal.splitlines()) == 1
    assert "is not the cluster that joined" in refusal
    assert member.secret() == before
    assert Member(member.fed, "other", clusters[1]).traces() == ""
    assert accounts(member) == ["kubeadmiral-member"]
    assert_works(member)


def test_a_failed_rotation_leaves_the_present_account_alone(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    before = member.secret()
    address = member.document["clusters"][0]["cluster"]["server"]
    move = ["patch", "fcluster", "frankfurt", "--type=merge", "-p"]
    member.fed.kubectl(*move, '{"spec": {"apiEndpoint": "https://127.0.0.1:1"}}')  # nothing listens there
    refusal = member.update_credentials(member.kubectl.kubeconfig, check=False)
    assert "https://127.0.0.1:1" in refusal
    assert accounts(member) == ["kubeadmiral-member"]
    assert member.secret() == before
    member.fed.kubectl(*move, f'{{"spec": {{"apiEndpoint": "{address}"}}}}')
    assert_works(member)


def test_a_member_with_given_credentials_is_reported_and_can_be_restricted(member: Member, tmp_path: Path) -> None:
    member.join(member.kubectl.kubeconfig, "--use-given-credentials")
    condition = member.until_authorized("RightsExcessive")
    assert "fedctl join --update-credentials frankfurt --kubeconfig FILE" in condition["message"]
    member.update_credentials(member.kubectl.kubeconfig)
    member.until_authorized("RightsSufficient")
    assert set(member.secret()) == {"certificate-authority-data", "service-account-token-data"}
    assert_works(member)
    member.unjoin()
    eventually(member.traces, lambda left: not left, what="no trace of the membership")


def test_a_refused_join_leaves_nothing_behind(member: Member, tmp_path: Path) -> None:
    weak = member.variant(tmp_path / "weak", {"token": member.token("edit")})
    refusal = member.join(weak, check=False)
    assert len(refusal.splitlines()) == 1
    assert "administrator" in refusal
    assert member.traces() == ""
    assert member.fed.kubectl("get", "fcluster", "frankfurt", "--ignore-not-found") == ""
    secrets = member.fed.kubectl("get", "secrets", "-n", NAMESPACE, "-o", "name")
    assert "frankfurt" not in secrets


def test_a_join_without_the_right_to_grant_leaves_nothing_behind(member: Member, tmp_path: Path) -> None:
    rules = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules}
    member.kubectl.apply({**role, "metadata": {"name": "namespace-admin"}})
    weak = member.variant(tmp_path / "weak", {"token": member.token("namespace-admin")})
    refusal = member.join(weak, check=False)
    assert "clusterroles" in refusal
    eventually(member.traces, lambda left: not left, what="nothing in the member")
    assert member.fed.kubectl("get", "fcluster", "frankfurt", "--ignore-not-found") == ""


def test_unknown_and_wrong_arguments_are_rejected(member: Member) -> None:
    assert 'cluster "frankfurt" is not joined' in member.update_credentials(member.kubectl.kubeconfig, check=False)
    assert "--kubeconfig FILE" in member.fedctl("join", "frankfurt", check=False)


def test_lost_credentials_are_named_with_the_command_and_replaced(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    member.kubectl("delete", "sa", "kubeadmiral-member", "-n", NAMESPACE)
    command = "fedctl join --update-credentials frankfurt --kubeconfig FILE"
    eventually(
        lambda: member.condition("Ready"),
        lambda seen: command in seen.get("message", ""),
        timeout_s=60,
        what="a condition with the command",
    )
    member.update_credentials(member.kubectl.kubeconfig)
    eventually(lambda: member.condition("Ready"), lambda seen: seen.get("status") == "True", what="Ready again")
    assert member.kubectl("get", "clusterrole", ROLE)
