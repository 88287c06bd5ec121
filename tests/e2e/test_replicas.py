"""Several `fedctl serve` on one PostgreSQL: all serve, one runs the controllers, and another takes over."""

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.support.federation import Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY
from tests.support.postgres import PostgresServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.postgres, pytest.mark.xdist_group("replicas")]
LEASE = ("lease", "federation-controllers", "-n", "kube-admiral-system")


class Replicas:
    """Two control planes on one database, and one member."""

    def __init__(self, folder: Path, url: str, member: Path) -> None:
        self._folder = folder
        self.url = url
        self.member = Kubectl(member)
        self.running: dict[str, Federation] = {}

    def start(self, name: str) -> Federation:
        fed = start_serve(self._folder / name, FEDERATION_STORE_URL=self.url)
        self.running[name] = fed
        return fed

    def leader(self, via: Federation) -> str:
        return via.kubectl("get", *LEASE, "-o", "jsonpath={.spec.holderIdentity}", "--ignore-not-found")

    def replicas(self, count: int) -> None:
        eventually(
            lambda: self.member("get", "deploy", "web", "--ignore-not-found", "-o", "jsonpath={.spec.replicas}"),
            lambda seen: seen == str(count),
            what=f"{count} replicas in the member",
        )

    def close(self) -> None:
        for fed in self.running.values():
            fed.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def replicas(tmp_path: Path, postgres: PostgresServer) -> Iterator[Replicas]:
    with free_clusters(tmp_path / "clusters", 1) as clusters:
        made = Replicas(tmp_path, postgres.create_database(), clusters[0])
        with closing(made):
            one, other = made.start("one"), made.start("two")
            fedctl("join", "frankfurt", "--kubeconfig", str(clusters[0]), KUBECONFIG=str(one.kubectl.kubeconfig))
            other.kubectl.apply(POLICY, DEPLOYMENT)
            other.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
            yield made


def test_another_process_takes_over_and_nothing_is_done_twice(replicas: Replicas, tmp_path: Path) -> None:
    one, two = replicas.running["one"], replicas.running["two"]
    first = replicas.leader(two)
    assert first
    token = one.kubectl("create", "token", "default").strip()
    kubeconfig = yaml.safe_load(two.kubectl.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    (tmp_path / "token.kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    who = Kubectl(tmp_path / "token.kubeconfig").json("auth", "whoami")
    assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"

    for each in (one, two):
        assert_pods_are_reached(each)
    one.kill()
    one.close()
    assert_pods_are_reached(two)
    eventually(lambda: replicas.leader(two), lambda seen: seen not in ("", first), timeout_s=30, what="another leader")
    two.kubectl("scale", "deploy/web", "--replicas=5")
    replicas.replicas(5)
    two.kubectl("create", "namespace", "short")
    two.kubectl("delete", "namespace", "short", "--timeout=60s")

    # It comes back as a follower, and takes over at once when the leader stops in order.
    one = replicas.start("one")
    one.kubectl("scale", "deploy/web", "--replicas=6")
    replicas.replicas(6)
    second = replicas.leader(one)
    assert two.stop() == 0
    eventually(
        lambda: replicas.leader(one), lambda seen: seen not in ("", second), timeout_s=7, what="the released Lease"
    )
    one.kubectl("scale", "deploy/web", "--replicas=7")
    replicas.replicas(7)
    events = one.kubectl.json("get", "events", "--field-selector", "involvedObject.name=web,reason=Scheduled")["items"]
    assert sum(event.get("count") or 1 for event in events) == 1, "one event per decision"


def assert_pods_are_reached(fed: Federation) -> None:
    """Each process has connections to the members, whichever leads."""
    names = eventually(lambda: fed.kubectl("get", "pods", "-o", "name").split(), bool, what="pods of the member")
    assert all(name.startswith("pod/frankfurt-web-") for name in names)
    assert "starting" in fed.kubectl("logs", "deploy/web")
    assert fed.kubectl("exec", names[0], "--", "echo", "hello") == "hello\n"


def test_a_leader_that_was_paused_writes_nothing_when_it_wakes(replicas: Replicas) -> None:
    one, two = replicas.running["one"], replicas.running["two"]
    first = replicas.leader(two)
    paused, other = (one, two) if is_leader(one) else (two, one)
    paused.process.send_signal(signal.SIGSTOP)
    second = eventually(lambda: replicas.leader(other), lambda seen: seen not in ("", first), timeout_s=30)
    other.kubectl("scale", "deploy/web", "--replicas=5")
    replicas.replicas(5)
    before = replicas.member("get", "deploy", "web", "-o", "jsonpath={.metadata.resourceVersion}")
    paused.process.send_signal(signal.SIGCONT)
    assert paused.process.wait(30) == 1
    assert "another process runs the controllers now: start this one again" in paused.log
    assert replicas.leader(other) == second
    assert replicas.member("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "5"
    assert replicas.member("get", "deploy", "web", "-o", "jsonpath={.metadata.resourceVersion}") >= before


def is_leader(fed: Federation) -> bool:
    metrics = fed.kubectl("get", "--raw", "/metrics")
    return 'federation_runtime_leader{lease="federation-controllers"} 1.0' in metrics


def test_a_server_with_keys_of_its_own_cannot_join_the_others(replicas: Replicas, tmp_path: Path) -> None:
    alone = start_serve(tmp_path / "alone")
    alone.close()
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
        servers = api.kubectl("get", "lease", "-n", "kube-system", "-l", label, "-o", "name")
        assert len(servers.splitlines()) == 1, "clients are sent to the API process only"
        # So are the controllers of the API server itself.
        api.kubectl("create", "namespace", "team")
        account = ("get", "serviceaccount", "default", "-n", "team", "-o", "name", "--ignore-not-found")
        eventually(lambda: api.kubectl(*account), bool, what="the default account of the namespace")
        api.kubectl("delete", "namespace", "team", "--timeout=60s")
        work.close()
        api.kubectl("create", "namespace", "later")
        api.kubectl("delete", "namespace", "later", "--wait=false")
        started = start_serve(tmp_path / "work", arguments=["--role", "controllers"], FEDERATION_STORE_URL=url)
        with closing(started):
            api.kubectl("wait", "--for=delete", "namespace/later", "--timeout=60s")
