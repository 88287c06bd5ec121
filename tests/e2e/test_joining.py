"""Joining and unjoining: every kind of credentials in a kubeconfig, and the state left in a member."""

import base64
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.federation import Federation, eventually, fedctl, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, NAMESPACE, POLICY, ROLE, Member, assert_works

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("starts a control plane and two clusters, which join it by turns"),
    pytest.mark.xdist_group("joining"),
]


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with closing(start_serve(tmp_path_factory.mktemp("joining") / "host")) as running:
        running.kubectl.apply(POLICY, DEPLOYMENT)
        yield running


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    with free_clusters(tmp_path_factory.mktemp("joining") / "clusters", 2) as running:
        yield running


@pytest.fixture
def member(fed: Federation, clusters: list[Path]) -> Iterator[Member]:
    one = Member(fed, "frankfurt", clusters[0])
    yield one
    one.clear()


def test_a_member_joins_with_a_client_certificate(member: Member) -> None:
    assert (
        member.join(member.kubectl.kubeconfig, "--labels", "region=eu") == 'cluster "frankfurt" joined and is ready\n'
    )
    assert_works(member)
    rows = member.fedctl("clusters").splitlines()
    assert rows[0].split()[:4] == ["NAME", "STATUS", "SINCE", "NODES"]
    assert [*rows[1].split()[:2], rows[1].split()[3]] == ["frankfurt", "Ready", "3"]
    assert "region=eu" in rows[1]


def test_a_member_joins_with_a_token_and_a_ca(member: Member, tmp_path: Path) -> None:
    member.join(member.variant(tmp_path / "token", {"token": member.token()}))
    assert_works(member)


def test_a_member_joins_with_a_token_file(member: Member, tmp_path: Path) -> None:
    (tmp_path / "the-token").write_text(member.token() + "\n")
    member.join(member.variant(tmp_path / "config", {"tokenFile": "the-token"}))
    assert_works(member)


def test_a_member_joins_with_certificate_files(member: Member, tmp_path: Path) -> None:
    user = member.document["users"][0]["user"]
    cluster = member.document["clusters"][0]["cluster"]
    for name, data in (
        ("ca.crt", cluster["certificate-authority-data"]),
        ("tls.crt", user["client-certificate-data"]),
        ("tls.key", user["client-key-data"]),
    ):
        (tmp_path / name).write_bytes(base64.b64decode(data))
    named = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    member.join(member.variant(tmp_path / "config", named, {"certificate-authority": "ca.crt"}))
    assert_works(member)


def test_a_member_joins_without_tls_verification_if_the_kubeconfig_disables_it(member: Member, tmp_path: Path) -> None:
    user = member.document["users"][0]["user"]
    member.join(member.variant(tmp_path / "insecure", user, {"insecure-skip-tls-verify": True}))
    assert member.fed.kubectl.api("").get("federatedclusters", "frankfurt")["spec"]["insecure"] is True
    assert_works(member)


def test_credentials_are_replaced_by_a_service_account(member: Member, tmp_path: Path) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    assert set(member.secret()) == {"certificate-authority-data", "service-account-token-data"}
    as_account = member.as_account(tmp_path / "account")
    assert "kubeadmiral-member" in as_account("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert as_account("auth", "can-i", "delete", "nodes", check=False).strip() == "no"
    fields = member.kubectl.api().get("deployments", "web")["metadata"]["managedFields"]
    assert "federation" in {entry["manager"] for entry in fields}


def test_credentials_of_all_members_are_replaced_and_a_failure_ends_nothing(
    member: Member, fed: Federation, clusters: list[Path], tmp_path: Path
) -> None:
    member.join(member.kubectl.kubeconfig)
    other = Member(fed, "paris", clusters[1])
    other.join(other.kubectl.kubeconfig)
    try:
        before, folder = member.secret(), tmp_path / "kubeconfigs"
        folder.mkdir()
        (folder / "frankfurt.kubeconfig").write_text(member.kubectl.kubeconfig.read_text())
        words = ("join", "--update-credentials", "--all", "--kubeconfig", str(folder))
        done = fedctl(*words, "--host-kubeconfig", str(fed.kubectl.kubeconfig), check=False)
        assert done.returncode == 1
        lines = sorted(done.stdout.splitlines())
        assert lines[0] == "2 members, 1 failed"
        assert lines[1].startswith("frankfurt: new credentials (service account kubeadmiral-member-")
        assert lines[2].startswith("paris: failed: ")
        assert "has no file paris.kubeconfig" in lines[2]
        assert member.secret() != before
    finally:
        other.unjoin()


def test_given_credentials_are_stored_only_if_that_is_requested(member: Member) -> None:
    member.join(member.kubectl.kubeconfig, "--use-given-credentials")
    assert_works(member)
    assert set(member.secret()) == {"certificate-authority-data", "client-certificate-data", "client-key-data"}


def test_a_member_joins_with_an_exec_plugin(member: Member, tmp_path: Path) -> None:
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": member.token()},
    }
    script = tmp_path / "plugin.py"
    script.write_text(f"print({json.dumps(json.dumps(answer))})\n")
    user = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }
    kubeconfig = member.variant(tmp_path / "exec", user)
    refusal = member.join(kubeconfig, "--use-given-credentials", check=False)
    assert "users[].user.exec" in refusal
    assert "--use-given-credentials" in refusal
    member.join(kubeconfig, "--use-service-account")  # the default, and the flag of earlier versions
    assert_works(member)


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"username": "admin", "password": "secret"}, "users[].user.username"),
        ({"token": "t", "as": "somebody"}, "users[].user.as"),
        ({}, "has no credentials"),
    ],
)
def test_credentials_that_cannot_be_kept_are_refused(
    member: Member, tmp_path: Path, user: dict[str, Any], field: str
) -> None:
    refusal = member.join(member.variant(tmp_path / "config", user), "--use-given-credentials", check=False)
    assert len(refusal.splitlines()) == 1
    assert field in refusal
    assert "secret" not in refusal
    assert member.system_namespace() is None


def test_unjoining_cleans_the_member_and_leaves_its_workloads(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    assert member.system_namespace() is not None
    assert member.unjoin() == (
        'cluster "frankfurt" left the federation\n'
        "1 object with 3 replicas left running in it, beside what replaces them in other clusters; they are yours now,\n"
        "without the label of the federation; see: fedctl leftovers --cluster frankfurt\n"
    )
    eventually(member.system_namespace, lambda seen: seen is None, what="the system namespace gone")
    assert member.runs_web()
    assert "kubeadmiral" not in json.dumps(
        {**member.kubectl.api().get("deployments", "web")["metadata"], "managedFields": []}
    )
    row = next(line for line in member.fedctl("leftovers").splitlines() if line.startswith("frankfurt"))
    assert row.split()[1:4] == ["Deployment", "default/web", "Kept"]
    assert "fedctl adopt deployment/web -n default --cluster frankfurt" in row
    eventually(lambda: names_of_rights(member), lambda seen: not seen, what="its rights gone")
    assert not member.fed.kubectl.api(NAMESPACE).exists("secrets", "frankfurt-credentials")
    host = member.fed.kubectl.api()
    status = eventually(
        lambda: host.get("federatedobjects", "web-deployments.apps").get("status", {}).get("clusters", []),
        lambda seen: not seen,
        what="no trace of the cluster in the federated object",
    )
    assert status == []


def test_unjoining_with_remove_deletes_what_was_delivered(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    assert member.unjoin("--remove").endswith("1 object with 3 replicas removed from it\n")
    assert not member.runs_web()


def names_of_rights(member: Member) -> list[str]:
    """Return the names of the federation's cluster roles and their bindings in the member."""
    cluster = member.kubectl.api("")
    names = cluster.names("clusterroles") + cluster.names("clusterrolebindings")
    return [name for name in names if "kubeadmiral" in name]


def test_a_namespace_that_existed_before_joining_is_released(member: Member) -> None:
    member.kubectl("create", "namespace", NAMESPACE)
    try:
        member.join(member.kubectl.kubeconfig)
        assert_works(member)
        member.unjoin()
        namespace = member.system_namespace()
        assert namespace is not None
        assert not namespace["metadata"].get("annotations")
        local = member.kubectl.api(NAMESPACE)
        eventually(
            lambda: local.names("serviceaccounts") + local.names("secrets"),
            lambda seen: not any("kubeadmiral-member" in name for name in seen),
            what="account and token gone",
        )
        eventually(lambda: names_of_rights(member), lambda seen: not seen, what="its rights gone")
    finally:
        member.kubectl("delete", "namespace", NAMESPACE)


def test_unjoining_waits_for_new_credentials_when_the_account_has_lost_its_rights(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    member.fed.kubectl("delete", "deploy", "web", "--wait")  # nothing else waits for the member
    try:
        member.kubectl("delete", "clusterrolebinding", ROLE)
        member.fed.kubectl("delete", "fcluster", member.name, "--wait=false")
        host = member.fed.kubectl.api()
        events = eventually(
            lambda: [event["message"] for event in host.list("events", namespace="")["items"]],
            lambda seen: any(f"fedctl join --update-credentials {member.name}" in message for message in seen),
            what="an event with the command",
        )
        assert any("have lost our label" in message for message in events)
        member.update_credentials(member.kubectl.kubeconfig)
        eventually(member.system_namespace, lambda seen: seen is None, what="the system namespace gone")
    finally:
        member.fed.kubectl.apply(DEPLOYMENT)


def test_a_cluster_can_rejoin_at_once_and_what_it_kept_is_offered_and_left(member: Member) -> None:
    member.join(member.kubectl.kubeconfig)
    assert_works(member)
    before = member.kubectl.api().get("deployments", "web")
    member.unjoin()
    preview = member.join(member.kubectl.kubeconfig, "--dry-run")
    assert "Deployment default/web: a user kept it" in preview or "it is taken over only on demand" in preview
    assert preview.endswith("nothing was joined: --dry-run\n")
    assert not member.is_joined()
    assert member.join(member.kubectl.kubeconfig).splitlines() == [
        *preview.splitlines()[:-1],
        'cluster "frankfurt" joined and is ready',
    ]
    member.unjoin()
    member.join(member.kubectl.kubeconfig)

    def status() -> str:
        found = member.fed.kubectl.api().get("federatedobjects", "web-deployments.apps")
        return str(next((each["status"] for each in found["status"]["clusters"]), ""))

    eventually(status, lambda seen: seen == "AlreadyExists", what="the kept object in the way")
    after = member.kubectl.api().get("deployments", "web")
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    member.fedctl("adopt", "deployment/web", "-n", "default", "--cluster", "frankfurt")
    eventually(status, lambda seen: seen == "OK", what="the kept object managed again")
    assert member.kubectl.api().get("deployments", "web")["metadata"]["uid"] == before["metadata"]["uid"]
    member.fed.kubectl(
        "annotate", "deploy", "web", "kubeadmiral.io/conflict-resolution-", "kubeadmiral.io/clusters-to-adopt-"
    )


def test_a_taint_prevents_placement_until_it_is_removed(fed: Federation, clusters: list[Path]) -> None:
    member = Member(fed, "oslo", clusters[1])
    member.join(clusters[1], "--taints", "maintenance=yes:NoSchedule")
    try:
        rows = member.fedctl("clusters").splitlines()
        assert "maintenance=yes:NoSchedule" in next(row for row in rows if row.startswith("oslo"))
        output = eventually(
            lambda: member.fedctl("why", "deploy/web"), lambda seen: "oslo" in seen, what="oslo in the explanation"
        )
        assert "rejected by TaintToleration" in next(row for row in output.splitlines() if row.startswith("oslo"))
        record = json.loads(member.fedctl("why", "deployment/web", "-o", "json"))
        assert record["explanation"]["rejected"]["oslo"]["plugin"] == "TaintToleration"
        fed.api("").patch("federatedclusters", "oslo", {"spec": {"taints": None}})
        assert_works(member)
    finally:
        member.unjoin()


def test_fedctl_runs_as_a_kubectl_plugin(member: Member) -> None:
    assert "no member clusters" in member.fed.kubectl("fed", "clusters")
    member.join(member.kubectl.kubeconfig, "--no-wait")
    assert json.loads(member.fed.kubectl("fed", "clusters", "-o", "json"))[0]["metadata"]["name"] == "frankfurt"


def test_health_and_metrics_are_served(fed: Federation) -> None:
    api = fed.api()
    assert "readyz check passed" in api.send("GET", "/readyz", verbose="true").text
    metrics = api.send("GET", "/metrics").text
    for name in ("federation_runtime_", "federation_store_", "federation_server_", "process_resident_memory_bytes"):
        assert name in metrics
    url = fed.ready_line.split()[1].rstrip(";")
    with httpx.Client(base_url=url, verify=False) as anonymous:  # a load balancer has no credentials
        for path in ("/livez", "/readyz"):
            assert anonymous.get(path, timeout=60).text == "ok"


def test_the_kubeconfig_path_is_printed(fed: Federation) -> None:
    done = fedctl("kubeconfig", "--dir", str(fed.directory))
    assert done.stdout == f"{fed.directory / 'kubeconfig'}\n"
