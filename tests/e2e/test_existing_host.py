"""`fedctl serve --host-kubeconfig` on an API server in another process, which knows nothing of the federation.

The tests of this module also run on a real API server (tests/kubernetes/members/test_existing_host.py), with another
fixture `host`. Document 003 on this kind of host is in test_seeds_on_existing_host.py.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import httpx
import pytest
import yaml

from tests.attacks.test_ui_actions import hidden_of
from tests.e2e.test_seeds_003 import Federated, Serve, fed, provide  # noqa: F401  # fixtures, with `serve` below
from tests.support.federation import Federation, Kubectl, eventually, fedctl, start_on_host
from tests.support.plainhost import PlainHost, plain_host
from tests.support.rest import Object
from tests.support.vectors import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("a host that stops, and two control planes"),
    pytest.mark.xdist_group("existinghost"),
]
USER = "system:serviceaccount:kube-admiral-system:federation"
WRITER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "writer"},
    "rules": [
        {
            "apiGroups": ["core.kubeadmiral.io"],
            "resources": ["federatedobjects", "propagationpolicies"],
            "verbs": ["create", "get", "patch", "update"],
        },
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
    ],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainHost]:
    """The host, in a process of its own."""
    with plain_host(tmp_path_factory.mktemp("host") / "server") as running:
        yield running


@pytest.fixture(scope="module")
def host(server: PlainHost) -> Path:
    """The kubeconfig of the host's administrator."""
    return server.kubeconfig


@pytest.fixture(scope="module")
def started() -> list[Federation]:
    """The processes that `serve` has started."""
    return []


@pytest.fixture(scope="module")
def serve(host: Path, started: list[Federation]) -> Serve:
    """The federation on that host."""

    def on_host(directory: Path) -> AbstractContextManager[Federation]:
        started.append(start_on_host(directory, host, arguments=["--ui-port", "0"]))
        return closing(started[-1])

    return on_host


@pytest.fixture(scope="module")
def tenant(fed: Federated, host: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:  # noqa: F811  # the fixture
    """kubectl of a user who may write policies and federated objects, but update no workload."""
    namespaced = ("-n", "default")
    fed.host("create", "serviceaccount", "tenant", *namespaced)
    fed.host.apply(WRITER)
    fed.host("create", "rolebinding", "tenant", "--clusterrole=writer", "--serviceaccount=default:tenant", *namespaced)
    token = fed.host("create", "token", "tenant", *namespaced).strip()
    document = yaml.safe_load(host.read_text())
    document["users"][0]["user"] = {"token": token}
    path = tmp_path_factory.mktemp("tenant") / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    found = Kubectl(path)
    for verb, resource in (("create", "federatedobjects"), ("create", "propagationpolicies"), ("get", "deployments")):
        eventually(
            lambda: found("auth", "can-i", verb, resource, *namespaced, check=False).strip(),  # noqa: B023  # called here
            lambda answer: answer == "yes",
            what=f"the tenant may {verb} {resource}",
        )
    return found


@pytest.fixture(scope="module")
def quickstart(fed: Federated) -> None:  # noqa: F811  # the fixture
    """The quickstart, in a namespace of its own."""
    fed.host("create", "namespace", "quickstart")
    for file in sorted((ROOT / "examples" / "quickstart").glob("*.yaml")):
        text = file.read_text().replace("namespace: default", "namespace: quickstart")
        fed.host("apply", "-f", "-", stdin=text.replace("cluster: member-", "cluster: cluster-0"))
    fed.host("rollout", "status", "-n", "quickstart", "deploy/nginx", "--timeout=90s")


@pytest.mark.usefixtures("quickstart")
def test_the_quickstart_runs(fed: Federated) -> None:  # noqa: F811  # the fixture
    deployment = fed.host.json("get", "deploy", "nginx", "-n", "quickstart")
    assert deployment["status"]["readyReplicas"] == 8
    divided = fed.in_members("nginx", "quickstart")
    assert {name: obj["spec"]["replicas"] for name, obj in divided.items()} == {
        "cluster-01": 4,
        "cluster-02": 2,
        "cluster-03": 2,
    }
    why = fedctl("why", "deploy/nginx", "-n", "quickstart", KUBECONFIG=str(fed.host.kubeconfig)).stdout
    assert "PropagationPolicy quickstart/divide-nginx" in why


@pytest.mark.usefixtures("quickstart")
def test_the_web_ui_shows_and_scales_with_the_token_of_its_user(
    fed: Federated,  # noqa: F811  # the fixture
    started: list[Federation],
) -> None:
    here = ("-n", "quickstart")
    fed.host("create", "serviceaccount", "alice", *here)
    fed.host("create", "role", "alice", "--verb=get,list,watch,patch", "--resource=deployments.apps", *here)
    fed.host("create", "rolebinding", "alice", "--role=alice", "--serviceaccount=quickstart:alice", *here)
    token = fed.host("create", "token", "alice", "-n", "quickstart").strip()
    url = started[0].ready_line.strip().rpartition(", web UI ")[2].removesuffix("/ui")
    target = "/ui/act/scale/apps/v1/deployments/quickstart/nginx"
    with httpx.Client(base_url=url, verify=False, headers={"Origin": url}) as page:  # a certificate of its own
        assert page.post("/ui/login", data={"token": token, "next": "/ui/overview"}).status_code == 303
        eventually(
            lambda: page.get("/ui/objects", params={"namespace": "quickstart"}).text,
            lambda text: "nginx" in text,
            what="the Deployment on the page, once the host knows the new role",
        )
        assert page.get(target.replace("/quickstart/", "/default/")).status_code == 403
        form = {**hidden_of(page.get(target).text), "replicas": "9", "step": "plan"}
        shown = page.post(target, data=form)
        assert shown.status_code == 200, shown.text[-800:]
        done = page.post(target, data={"replicas": "9", **hidden_of(shown.text)})
        assert done.status_code == 303, done.text[-800:]
    live = fed.host.json("get", "deploy", "nginx", "-n", "quickstart")
    assert live["spec"]["replicas"] == 9
    fed.host("scale", "-n", "quickstart", "deploy/nginx", "--replicas=8")


@pytest.mark.usefixtures("quickstart")
def test_a_new_image_reaches_the_members_and_is_taken_back(fed: Federated) -> None:  # noqa: F811  # the fixture
    here = ("-n", "quickstart", "deploy/nginx")

    def images() -> set[str]:
        return {image.rpartition("/")[2] for image in fed.images("nginx", "quickstart").values()}

    (before,) = images()
    fed.host("set", "image", *here, "nginx=nginx:1.28")
    eventually(images, lambda seen: seen == {"nginx:1.28"}, what="the new image in the members")
    fed.host("rollout", "undo", *here)
    eventually(images, lambda seen: seen == {before}, what="the earlier image in the members")


def test_a_new_object_has_our_finalizer_from_its_first_moment(fed: Federated) -> None:  # noqa: F811  # the fixture
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "held", "labels": {"kubeadmiral.io/propagation-policy-name": "mypolicy"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "held"}},
            "template": {
                "metadata": {"labels": {"app": "held"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]},
            },
        },
    }
    fed.apply("propagationpolicy.yaml")

    def finalizers() -> list[str]:
        answer = fed.host("create", "-f", "-", "--dry-run=server", "-o", "json", stdin=json.dumps(manifest))
        found: list[str] = json.loads(answer)["metadata"].get("finalizers", [])
        return found

    assert eventually(finalizers, bool) == ["kubeadmiral.io/federate-controller"]


def test_the_controllers_act_as_an_account_without_wildcards(fed: Federated) -> None:  # noqa: F811  # the fixture
    may = ("auth", "can-i", f"--as={USER}")
    assert fed.host(*may, "update", "deployments.apps/status", check=False).strip() == "yes"
    assert fed.host(*may, "create", "pods", check=False).strip() == "no"
    assert fed.host(*may, "escalate", "clusterroles", check=False).strip() == "no"


def test_a_tenant_cannot_deliver_with_the_federations_rights(fed: Federated, tenant: Kubectl) -> None:  # noqa: F811  # the fixture
    template = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken", "namespace": "default"}}
    manifest = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "FederatedObject",
        "metadata": {"name": "taken", "namespace": "default"},
        "spec": {"template": template},
    }
    refused = tenant.run("create", "-f", "-", stdin=json.dumps(manifest)).stderr
    assert 'cannot federate resource "secrets"' in refused
    fed.host("create", "-f", "-", stdin=json.dumps(manifest))
    written = fed.host.json("get", "federatedobject", "taken", "-n", "default")
    assert written["metadata"]["annotations"]["federation.kubeadmiral.io/hand-written"] == "true"
    fed.host("delete", "federatedobject", "taken", "-n", "default")


def test_a_tenants_policy_selects_only_what_he_may_update(fed: Federated, tenant: Kubectl) -> None:  # noqa: F811  # the fixture
    policy = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "secrets", "namespace": "default"},
        "spec": {
            "schedulingMode": "Duplicate",
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}],
            "placement": [{"cluster": "nowhere"}],
        },
    }
    assert "cannot update secrets" in tenant.run("create", "-f", "-", stdin=json.dumps(policy)).stderr
    done = fed.host.run("create", "-f", "-", "--dry-run=server", stdin=json.dumps(policy))
    assert done.returncode == 0
    assert "there is no FederatedCluster 'nowhere'" in done.stderr


def test_a_project_limits_clusters_and_gives_no_roles_that_its_author_may_lack(fed: Federated) -> None:  # noqa: F811  # the fixture
    project = yaml.safe_load((ROOT / "examples" / "projects" / "shop.yaml").read_text())
    project["spec"]["clusters"] = {"names": ["cluster-01"]}
    fed.host.apply(project)
    state = "jsonpath={.status.conditions[0].reason} {.status.clusters}"
    eventually(
        lambda: fed.host("get", "project", "shop", "-o", state),
        'MembersNotGranted ["cluster-01"]'.__eq__,
        what="the project is in force",
    )
    assert fed.host("get", "federatedresourcequotas", "-n", "shop", "-o", "name").split()
    assert fed.host("get", "rolebindings", "-n", "shop", "-o", "name") == ""
    fed.host("delete", "project", "shop")


def test_decisions_are_shown_to_users_who_may_read_the_object(fed: Federated, tenant: Kubectl) -> None:  # noqa: F811  # the fixture
    fed.apply("weights-40-30-40.yaml")
    eventually(lambda: fed.replicas("weighted"), lambda seen: sum(seen.values()) == 110)
    why = ("why", "--kubeconfig", str(tenant.kubeconfig))
    assert "cluster-01" in fedctl(*why, "deployment/weighted").stdout
    refused = fedctl(*why, "secret/weighted", check=False)
    assert refused.returncode == 1
    assert 'cannot get resource "secrets"' in refused.stderr


def test_a_wrong_kubeconfig_is_one_line(host: Path, tmp_path: Path) -> None:
    document = yaml.safe_load(host.read_text())
    document["users"][0]["user"] = {"token": "expired"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    options = ("serve", "--dir", str(tmp_path / "state"), "--host-kubeconfig", str(tmp_path / "kubeconfig"))
    done = fedctl(*options, check=False, timeout_s=90)
    assert done.stderr == (
        "fedctl: the host refuses the credentials of --host-kubeconfig: they are expired or revoked\n"
    )
    assert done.returncode == 1


def test_work_goes_on_when_the_host_was_away(fed: Federated, server: PlainHost) -> None:  # noqa: F811  # the fixture
    fed.apply("weights-40-30-40.yaml")
    eventually(lambda: fed.replicas("weighted"), lambda seen: sum(seen.values()) == 110)
    server.stop()
    server.start()
    fed.host("scale", "deploy/weighted", "--replicas=11")
    placed = eventually(lambda: fed.replicas("weighted"), lambda seen: sum(seen.values()) == 11)
    assert placed == {"cluster-01": 4, "cluster-02": 3, "cluster-03": 4}


def test_another_process_goes_on_after_kill_and_repeats_nothing(
    fed: Federated,  # noqa: F811  # the fixture
    host: Path,
    started: list[Federation],
    tmp_path: Path,
) -> None:
    fed.apply("weights-40-30-40.yaml")
    selector = "involvedObject.name=weighted,reason=Scheduled"

    def scaled(count: int) -> dict[str, int]:
        fed.host("scale", "deploy/weighted", f"--replicas={count}")
        eventually(lambda: fed.replicas("weighted"), lambda seen: sum(seen.values()) == count)
        return {name: obj["metadata"]["generation"] for name, obj in fed.in_members("weighted").items()}

    def events() -> list[Object]:
        return fed.host.api().list("events", fieldSelector=selector)["items"]

    def reported() -> int:
        return sum(event.get("count") or 1 for event in events())

    def leading() -> str:
        lease = fed.host.api("kube-admiral-system").get("leases", "federation-controllers")
        return lease["spec"].get("holderIdentity") or ""

    with closing(start_on_host(tmp_path / "second", host)) as second:
        generations, leader = scaled(22), leading()
        eventually(events, lambda seen: "cluster-01 40 → 8" in str(seen), what="the event of the last decision")
        before = reported()
        started[-1].kill()
        eventually(leading, lambda seen: seen not in ("", leader))
        after = scaled(33)
        assert after == {name: generation + 1 for name, generation in generations.items()}, "one write per change"
        assert eventually(reported, lambda seen: seen > before) == before + 1, "one event per decision"
        assert "Traceback" not in second.log
        # The webhooks of our kinds lead to the process that runs.
        fed.host("annotate", "propagationpolicy", "--all", "touched=true")
