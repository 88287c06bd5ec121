"""Rules for clusters, suspensions, content, imports, later kinds and joining by policy, with real members."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.test_joining_by_profile import POLICIES as JOIN_POLICIES
from tests.e2e.test_joining_by_profile import Inventory, begin, write_providers
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import (
    RealFederation,
    a_labelled_policy,
    cleaned,
    ready_in,
    real_federation,
    scheduled,
    until_ready_in,
)
from tests.kubernetes.members.test_custom_resources import DEFINITION, FEDERATED_TYPE, GROUP, a_widget
from tests.support.federation import eventually
from tests.support.joining import NAMESPACE, Member, assert_works
from tests.support.manifests import a_deployment
from tests.support.sources import ROOT

from federation.api import names

pytestmark = pytest.mark.real_time
EAST, WEST = "member-1", "member-2"
CORE = "core.kubeadmiral.io/v1alpha1"
IMAGE = "{.spec.template.spec.containers[0].image}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rules")


@pytest.fixture(scope="module")
def fed(folder: Path, real: list[Cluster]) -> Iterator[RealFederation]:
    """Two members, and a program with credentials for the third cluster."""
    listed = write_providers(folder, yaml.safe_load(real[2].kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    members = dict(zip((EAST, WEST), real, strict=False))
    environment = {"FEDERATION_CLUSTER_PROVIDERS_FILE": str(listed)}
    with cleaned(real[2:]), real_federation(folder, members, **environment) as running:
        yield running


def a_rule(name: str, effect: str, *, term: dict[str, Any]) -> dict[str, Any]:
    taints = [{"key": name, "effect": effect}]
    spec = {"when": [term], "holdSeconds": 1, "clearSeconds": 1, "maxClusters": "100%", "taints": taints}
    return {"apiVersion": CORE, "kind": "ClusterTaintPolicy", "metadata": {"name": name}, "spec": spec}


def a_remedy(name: str, *, actions: list[dict[str, Any]], term: dict[str, Any]) -> dict[str, Any]:
    spec = {"when": [term], "holdSeconds": 1, "clearSeconds": 1, "actions": actions}
    return {"apiVersion": CORE, "kind": "Remedy", "metadata": {"name": name}, "spec": spec}


def until_tainted(fed: RealFederation, key: str, *members: str) -> None:
    """Wait until just these members have a taint with this key."""

    def tainted() -> list[str]:
        clusters = fed.kubectl.json("get", "federatedclusters")["items"]
        return [
            each["metadata"]["name"]
            for each in clusters
            if any(taint["key"] == key for taint in each["spec"].get("taints") or ())
        ]

    eventually(tainted, lambda seen: seen == list(members), what=f"{key} in {members}")


def test_a_label_of_a_cluster_taints_it_and_its_replicas_move(fed: RealFederation) -> None:
    single = a_labelled_policy("single", schedulingMode="Duplicate", maxClusters=1)
    trouble = a_rule("trouble", "NoExecute", term={"clusterLabels": {"matchLabels": {"provider": "troubled"}}})
    remedy = a_remedy("cordoned", actions=[{"type": "Cordon"}], term=trouble["spec"]["when"][0])
    fed.kubectl.apply(single, a_deployment("moved", 2, policy="single"), trouble, remedy)
    [home] = eventually(lambda: ready_in(fed, "moved"), bool, what="it runs")
    elsewhere = WEST if home == EAST else EAST
    fed.kubectl("label", "federatedcluster", home, "provider=troubled")
    until_tainted(fed, "trouble", home)
    until_tainted(fed, names.TAINT_UNSCHEDULABLE, home)
    until_ready_in(fed, "moved", elsewhere)
    assert "trouble" in fed.fedctl("why", "deployment/moved")
    fed.kubectl("label", "federatedcluster", home, "provider-")
    until_tainted(fed, "trouble")
    until_tainted(fed, names.TAINT_UNSCHEDULABLE)
    fed.kubectl("delete", "clustertaintpolicy/trouble", "remedy/cordoned")


def test_a_kind_federated_later_taints_by_a_condition_until_all_members_grant_it(
    fed: RealFederation, folder: Path
) -> None:
    term = {"conditions": [{"type": "Authorized", "operator": "NotIn", "values": ["True"]}]}
    fed.kubectl.apply(a_rule("rights", "NoSchedule", term=term))
    for kubectl in (fed.kubectl, fed.member(EAST), fed.member(WEST)):
        kubectl.apply(DEFINITION)
        kubectl("wait", "--for=condition=Established", f"crd/widgets.{GROUP}", "--timeout=30s")
    policy = a_labelled_policy("widgets", schedulingMode="Duplicate")
    policy["spec"]["resourceSelectors"] = [{"apiVersion": f"{GROUP}/v1", "kind": "Widget"}]
    fed.kubectl.apply(FEDERATED_TYPE, policy, a_widget("wheel"))
    until_tainted(fed, "rights", EAST, WEST)
    assert fed.in_members("widgets", "wheel") == {}

    kubeconfigs = folder / "kubeconfigs"
    kubeconfigs.mkdir()
    for name, cluster in fed.clusters.items():
        (kubeconfigs / f"{name}.kubeconfig").write_text(cluster.kubeconfig.read_text())
    printed = fed.fedctl("join", "--update-credentials", "--all", "--kubeconfig", str(kubeconfigs))
    assert printed.splitlines()[-1] == "2 members, none failed"
    until_tainted(fed, "rights")
    fed.kubectl("delete", "clustertaintpolicy", "rights")
    for name in fed.members:
        eventually(
            lambda name=name: fed.member(name)("get", f"widgets.{GROUP}", "wheel", "--ignore-not-found"),
            bool,
            what=f"the object in {name}",
        )


def test_a_suspended_delivery_waits_for_its_end(fed: RealFederation) -> None:
    fed.kubectl.apply(a_labelled_policy("both", schedulingMode="Duplicate"), a_deployment("held", 1, policy="both"))
    until_ready_in(fed, "held", EAST, WEST)
    spec = {"clusters": [EAST], "owner": "storage team", "reason": "volumes are copied"}
    copy = {"apiVersion": CORE, "kind": "DeliverySuspension", "metadata": {"name": "copy", "namespace": "default"}}
    fed.kubectl.apply({**copy, "spec": spec})
    fed.kubectl("set", "image", "deployment/held", "web=nginx:1.28")

    def image(member: str) -> str:
        return fed.member(member)("get", "deployment", "held", "-o", f"jsonpath={IMAGE}")

    eventually(lambda: image(WEST), lambda seen: seen == "nginx:1.28", what="the other cluster goes on")
    shown = eventually(
        lambda: fed.fedctl("why", "deployment/held"), lambda seen: "DeliverySuspended" in seen, what="it says so"
    )
    assert "volumes are copied (owner: storage team)" in shown
    assert image(EAST) == "nginx:1.27"
    fed.kubectl("delete", "deliverysuspension", "copy")
    eventually(lambda: image(EAST), lambda seen: seen == "nginx:1.28", what="what waited is delivered")


def test_suspended_scheduling_places_nothing_until_it_ends(fed: RealFederation) -> None:
    suspension = {"scheduling": True, "reason": "capacity is being moved"}
    paused = a_labelled_policy("paused", schedulingMode="Duplicate", suspension=suspension)
    fed.kubectl.apply(paused, a_deployment("waiting", 1, policy="paused"))
    held = eventually(
        lambda: scheduled(fed, "waiting"),
        lambda seen: seen.get("reason") == "SchedulingSuspended",
        what="it waits for the scheduler",
    )
    assert "capacity is being moved" in held["message"]
    assert fed.in_members("deployments", "waiting") == {}
    fed.kubectl("patch", "propagationpolicy", "paused", "--type=merge", "-p", '{"spec":{"suspension":null}}')
    until_ready_in(fed, "waiting", EAST, WEST)


def test_a_retained_field_stays_and_a_changed_one_is_reported(fed: RealFederation) -> None:
    fed.kubectl("create", "namespace", "fields")
    fed.kubectl("apply", "-n", "fields", "-f", str(ROOT / "examples" / "sync" / "settings.yaml"))
    rule = {"spec": {"retention": [{"path": "data.endpoint"}], "drift": {"mode": "Report"}}}
    fed.kubectl("patch", "ftc", "configmaps", "--type=merge", "-p", json.dumps(rule))

    def state() -> str:
        return fed.fedctl("why", "configmap/settings", "-n", "fields")

    def data() -> dict[str, str]:
        found = fed.in_members("configmaps", "settings", "fields").get(WEST) or {}
        return found.get("data") or {}

    eventually(data, lambda seen: seen == {"endpoint": "default", "level": "info"}, what="delivered")
    changed = {"data": {"endpoint": "west", "level": "debug"}}
    patch = ("patch", "configmap", "settings", "-n", "fields", "--type=merge", "-p", json.dumps(changed))
    fed.member(WEST)(*patch)
    eventually(state, lambda seen: "Drifted" in seen and "changed in the cluster: data.level" in seen, what="reported")
    assert data() == changed["data"]
    fed.kubectl("patch", "ftc", "configmaps", "--type=merge", "-p", '{"spec":{"drift":null}}')
    eventually(data, lambda seen: seen == {"endpoint": "west", "level": "info"}, what="repaired but for the endpoint")
    fed.kubectl("patch", "ftc", "configmaps", "--type=merge", "-p", '{"spec":{"retention":null}}')


def test_content_differs_by_cluster_is_taken_over_if_equal_and_a_higher_policy_wins(fed: RealFederation) -> None:
    def data(member: str, name: str) -> dict[str, str]:
        found = fed.in_members("configmaps", name, "content").get(member) or {}
        return found.get("data") or {}

    fed.kubectl("create", "namespace", "content")
    fed.kubectl("apply", "-n", "content", "-f", str(ROOT / "examples" / "sync" / "settings.yaml"))
    for manifest in yaml.safe_load_all((ROOT / "examples" / "faq" / "configuration.yaml").read_text()):
        metadata = {"name": manifest["metadata"]["name"], "namespace": "content"}
        fed.kubectl.apply({**manifest, "metadata": metadata})
    host = 'host: "db.member-2.example"'
    eventually(lambda: data(WEST, "shop-config"), lambda seen: host in seen.get("app.yaml", ""), what="its own value")
    eventually(lambda: data(EAST, "shop-config"), lambda seen: "host: db.example" in seen.get("app.yaml", ""))

    for member, colour in ((EAST, "blue"), (WEST, "red")):
        fed.member(member)("create", "configmap", "colors", "-n", "content", f"--from-literal=sky={colour}")
    fed.kubectl("apply", "-n", "content", "-f", str(ROOT / "examples" / "sync" / "colors.yaml"))
    eventually(
        lambda: fed.fedctl("why", "configmap/colors", "-n", "content"),
        lambda seen: "differs, so it is not taken over: data.sky" in seen,
        what="only the equal one is taken over",
    )
    assert data(WEST, "colors") == {"sky": "red"}
    fed.fedctl("adopt", "configmap/colors", "-n", "content", "--cluster", WEST)
    eventually(lambda: data(WEST, "colors"), lambda seen: seen == {"sky": "blue"}, what="taken over on demand")

    higher = a_labelled_policy("higher", schedulingMode="Duplicate", priority=10)
    higher["spec"]["placement"] = [{"cluster": EAST}]
    higher["metadata"]["namespace"] = "content"
    higher["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]
    assert data(WEST, "settings")
    fed.kubectl.apply(higher)
    eventually(lambda: data(WEST, "settings"), lambda seen: not seen, what="the higher policy applies")
    assert data(EAST, "settings")


def test_a_running_application_is_imported_without_a_restart_and_migrates(fed: RealFederation) -> None:
    member = fed.member(WEST)
    member("apply", "-f", str(ROOT / "examples" / "import" / "boutique.yaml"))
    member("rollout", "status", "deployment/web", "-n", "boutique", "--timeout=60s")
    pods = ("get", "pods", "-n", "boutique", "-o", "jsonpath={.items[*].metadata.uid}")
    before = member(*pods)
    printed = fed.fedctl("import", "--from-cluster", WEST, "namespace/boutique")
    assert f"deployment/web imported from {WEST}" in printed
    assert ready_in(fed, "web", "boutique") == [WEST]
    assert member(*pods) == before, "no pod restarts"

    wider = '{"spec":{"placement":null,"maxClusters":1}}'
    fed.kubectl("patch", "propagationpolicy", f"import-{WEST}", "-n", "boutique", "--type=merge", "-p", wider)
    follower = 'kubeadmiral.io/followers=[{"kind":"Service","name":"web"}]'
    fed.kubectl("annotate", "deployment", "web", "-n", "boutique", follower)
    fed.fedctl("migrate", "deployment/web", "-n", "boutique", "--to", EAST)
    until_ready_in(fed, "web", EAST, namespace="boutique")
    for plural, name in (("configmaps", "settings"), ("secrets", "database"), ("services", "web")):
        assert EAST in fed.in_members(plural, name, "boutique"), f"{plural} went along"


def test_a_real_cluster_joins_by_a_policy_with_credentials_of_a_program(
    fed: RealFederation, folder: Path, real: list[Cluster]
) -> None:
    inventory = Inventory(fed, Member(fed, "joined", real[2].kubeconfig), folder, evil_port=1)
    begin(inventory)
    inventory.write("joined", {"server": inventory.server, "certificate-authority-data": inventory.ca})
    eventually(
        lambda: fed.kubectl.json("get", JOIN_POLICIES, "from-ocm").get("status"),
        lambda seen: seen == {"selected": 1, "joined": 1},
        what="the cluster joined",
    )
    fed.kubectl.apply(a_labelled_policy("three", schedulingMode="Duplicate"), a_deployment("web", 3, policy="three"))
    assert_works(inventory.member)
    assert set(inventory.member.secret()) == {"certificate-authority-data", "service-account-token-data"}
    until_ready_in(fed, "web", EAST, WEST)

    status = eventually(
        lambda: fed.kubectl.json("get", "clusterprofile", "joined", "-n", NAMESPACE).get("status") or {},
        lambda seen: ("ControlPlaneHealthy", "True") in [(c["type"], c["status"]) for c in seen.get("conditions", ())],
        what="the inventory shows it",
    )
    assert status["version"]["kubernetes"] == inventory.member.kubectl.json("version")["serverVersion"]["gitVersion"]
