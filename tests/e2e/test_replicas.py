"""Several `fedctl serve` on one PostgreSQL: all serve, one runs the controllers, and another takes over."""

import signal
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from federation.apiserver.auth.pki import ensure_pki
from tests.support.federation import PATIENCE_S, Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY
from tests.support.postgres import PostgresServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("starts two control planes, a member and their successors"),
    pytest.mark.postgres,
    pytest.mark.xdist_group("replicas"),
]


class Replicas:
    """Two control planes on one database, and one member."""

    def __init__(self, folder: Path, url: str, member: Path) -> None:
        self._folder = folder
        self.url = url
        self.member = Kubectl(member)
        self.running: dict[str, Federation] = {}

    def start(self, name: str) -> Federation:
        """Start a control plane unless it runs."""
        known = self.running.get(name)
        if known is not None and known.process.poll() is None:
            return known
        if known is not None:
            known.close()
        self.running[name] = start_serve(self._folder / name, FEDERATION_STORE_URL=self.url)
        return self.running[name]

    def leader(self, via: Federation) -> str:
        lease = via.api("kube-admiral-system").find("leases", "federation-controllers")
        return str(lease["spec"].get("holderIdentity") or "") if lease else ""

    def another_leader(self, via: Federation, former: str) -> str:
        """Wait until another process leads."""
        return eventually(lambda: self.leader(via), lambda seen: seen not in ("", former), what="another leader")

    def scale(self, via: Federation, count: int) -> None:
        """Scale the Deployment and wait for the replicas in the member."""
        via.api().patch("deployments", "web", {"spec": {"replicas": count}}, "scale")
        api = self.member.api()
        eventually(
            lambda: (api.find("deployments", "web") or {}).get("spec", {}).get("replicas"),
            lambda seen: seen == count,
            what=f"{count} replicas in the member",
        )

    def close(self) -> None:
        for fed in self.running.values():
            fed.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Replicas]:
    folder = tmp_path_factory.mktemp("replicas")
    with free_clusters(folder / "clusters", 1) as clusters:
        made = Replicas(folder, postgres.create_database(), clusters[0])
        with closing(made):
            one, other = made.start("one"), made.start("two")
            fedctl("join", "frankfurt", "--kubeconfig", str(clusters[0]), KUBECONFIG=str(one.kubectl.kubeconfig))
            other.kubectl.apply(POLICY, DEPLOYMENT)
            other.kubectl("rollout", "status", "deploy/web", f"--timeout={PATIENCE_S}s")
            yield made


@pytest.fixture
def replicas(site: Replicas) -> Replicas:
    """The two, both running, one of them as the leader."""
    one, _ = site.start("one"), site.start("two")
    eventually(lambda: [is_leader(fed) for fed in site.running.values()].count(True), lambda seen: seen == 1)
    assert site.leader(one)
    return site


def test_another_process_takes_over_and_nothing_is_done_twice(replicas: Replicas, tmp_path: Path) -> None:
    one, two = replicas.running["one"], replicas.running["two"]
    token = one.kubectl("create", "token", "default").strip()
    kubeconfig = yaml.safe_load(two.kubectl.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    (tmp_path / "token.kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    who = Kubectl(tmp_path / "token.kubeconfig").json("auth", "whoami")
    assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"

    names = ["one", "two"] if is_leader(one) else ["two", "one"]
    leader, other = (replicas.running[name] for name in names)
    for each in (leader, other):
        assert_pods_are_reached(each)
    first = replicas.leader(other)
    leader.kill()
    assert_pods_are_reached(other)
    second = replicas.another_leader(other, first)
    replicas.scale(other, 5)
    api = other.api("")
    api.create("namespaces", {"metadata": {"name": "short"}})
    api.delete("namespaces", "short")
    api.wait_gone("namespaces", "short")

    # It comes back as a follower, and takes over at once when the leader stops in order.
    back = replicas.start(names[0])
    replicas.scale(back, 6)
    assert replicas.leader(back) == second
    assert other.stop() == 0
    assert replicas.leader(back) != second, "the Lease is released"
    replicas.another_leader(back, second)
    replicas.scale(back, 7)
    selected = {"fieldSelector": "involvedObject.name=web,reason=Scheduled"}
    events = back.api().list("events", **selected)["items"]
    assert sum(event.get("count") or 1 for event in events) == 1, "one event per decision"


def assert_pods_are_reached(fed: Federation) -> None:
    """Each process has connections to the members, whichever leads."""
    api = fed.api()
    names = eventually(lambda: api.names("pods"), bool, what="pods of the member")
    assert all(name.startswith("frankfurt-web-") for name in names)
    assert "starting" in api.send("GET", api.url("pods", names[0], "log")).text
    assert fed.kubectl("exec", names[0], "--", "echo", "hello") == "hello\n"


def test_a_leader_that_was_paused_writes_nothing_when_it_wakes(replicas: Replicas) -> None:
    one, two = replicas.running["one"], replicas.running["two"]
    paused, other = (one, two) if is_leader(one) else (two, one)
    first = replicas.leader(other)
    paused.process.send_signal(signal.SIGSTOP)
    try:
        second = replicas.another_leader(other, first)
        replicas.scale(other, 4)
        before = replicas.member.api().get("deployments", "web")
    finally:
        paused.process.send_signal(signal.SIGCONT)
    assert paused.process.wait(PATIENCE_S) == 1
    assert "another process runs the controllers now: start this one again" in paused.log
    assert replicas.leader(other) == second
    after = replicas.member.api().get("deployments", "web")
    assert after["spec"] == before["spec"]
    writers = {entry["manager"]: entry.get("time") for entry in before["metadata"]["managedFields"]}
    assert {entry["manager"]: entry.get("time") for entry in after["metadata"]["managedFields"]}["federation"] == (
        writers["federation"]
    )


def is_leader(fed: Federation) -> bool:
    metrics = fed.api().send("GET", "/metrics").text
    return 'federation_runtime_leader{lease="federation-controllers"} 1.0' in metrics


def test_a_server_with_keys_of_its_own_cannot_join_the_others(replicas: Replicas, tmp_path: Path) -> None:
    ensure_pki(tmp_path / "alone" / "pki", now=datetime.now(UTC))
    with pytest.raises(AssertionError, match="is not the key that the servers of this database share"):
        start_serve(tmp_path / "alone", FEDERATION_STORE_URL=replicas.url)


def test_a_process_with_one_role_does_nothing_else(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.create_database()
    with (
        closing(start_serve(tmp_path / "api", arguments=["--role", "api"], FEDERATION_STORE_URL=url)) as api,
        closing(start_serve(tmp_path / "work", arguments=["--role", "controllers"], FEDERATION_STORE_URL=url)) as work,
    ):
        # The API process started first, so it would lead if it was a candidate.
        eventually(lambda: is_leader(work), bool, what="the controllers' process leads")
        label = "apiserver.kubernetes.io/identity"
        leases = api.api("kube-system")
        servers = eventually(lambda: leases.names("leases", labelSelector=label), bool, what="the server's own Lease")
        assert len(servers) == 1, "clients are sent to the API process only"
        # So are the controllers of the API server itself.
        cluster = api.api("")
        cluster.create("namespaces", {"metadata": {"name": "team"}})
        account = api.api("team")
        eventually(lambda: account.exists("serviceaccounts", "default"), bool, what="the namespace's default account")
        cluster.delete("namespaces", "team")
        cluster.wait_gone("namespaces", "team")
        work.close()
        cluster.create("namespaces", {"metadata": {"name": "later"}})
        cluster.delete("namespaces", "later")
        started = start_serve(tmp_path / "work", arguments=["--role", "controllers"], FEDERATION_STORE_URL=url)
        with closing(started):
            cluster.wait_gone("namespaces", "later")
