"""Everyday tasks of a Kubernetes user, performed on a federation with the real kubectl.

A namespace per test. kubectl writes, and shows what it is about; members are read without it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.federation import Federation, Kubectl, eventually, fedctl
from tests.support.shared import new_namespace

pytestmark = [pytest.mark.e2e, pytest.mark.slow("kubectl on a federation"), pytest.mark.xdist_group("shared")]


class User:
    """A user of one namespace of the host, with access to the members."""

    def __init__(self, fed: Federation, namespace: str) -> None:
        self.fed = fed
        self.namespace = namespace
        self.members = fed.members

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.fed.kubectl(*arguments, "-n", self.namespace, stdin=stdin)

    def apply(self, *manifests: dict[str, Any]) -> str:
        return self.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, manifests)))

    def why(self, target: str) -> str:
        host = str(self.fed.kubectl.kubeconfig)
        return fedctl("why", target, "-n", self.namespace, "--kubeconfig", host).stdout

    def look(self, plural: str, name: str) -> dict[str, Any]:
        """Return an object as the members have it, by member; members without it are left out."""
        return self.fed.in_members(plural, name, self.namespace)

    def replicas(self, name: str = "web") -> dict[str, int]:
        return {member: obj["spec"]["replicas"] for member, obj in self.look("deployments", name).items()}

    def images(self) -> dict[str, str]:
        """Return the image of the Deployment, by member."""
        found = self.look("deployments", "web").items()
        return {member: obj["spec"]["template"]["spec"]["containers"][0]["image"] for member, obj in found}

    def images_of_pods(self) -> set[str]:
        """Return the images of the pods in all members."""
        listed = [self.fed.api(self.namespace, member=member).list("pods") for member in self.members]
        return {each["image"] for pods in listed for pod in pods["items"] for each in pod["spec"]["containers"]}

    def data(self, name: str = "settings", plural: str = "configmaps") -> dict[str, dict[str, str]]:
        """Return the data of a ConfigMap or Secret, by member."""
        return {member: obj["data"] for member, obj in self.look(plural, name).items()}

    def until_replicas(self, *numbers: int, name: str = "web") -> None:
        wanted = {f"member-{place}": count for place, count in enumerate(numbers, 1) if count}
        eventually(lambda: self.replicas(name), lambda seen: seen == wanted, what=f"{name} as {wanted}")

    def until_rolled_out(self, name: str = "web") -> str:
        return self.kubectl("rollout", "status", f"deploy/{name}", "--timeout=90s")


@pytest.fixture(scope="module")
def fed(shared_federation: Federation) -> Federation:
    """The federation; real clusters are the members in tests/kubernetes/members/test_flows.py."""
    return shared_federation


@pytest.fixture
def user(fed: Federation) -> Iterator[User]:
    """A user with a namespace. It stays without its pods: the guard holds the eleventh deletion of a namespace."""
    namespace = new_namespace(fed, "user")
    yield User(fed, namespace)
    api = fed.api(namespace)
    api.send("DELETE", api.url("deployments"))


def a_policy(name: str = "spread", mode: str = "Divide", **spec: Any) -> dict[str, Any]:
    """A policy for everything in its namespace; without `placement`, any division over any clusters will do."""
    kinds = [("apps/v1", "Deployment"), ("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service")]
    selectors = [{"apiVersion": version, "kind": kind} for version, kind in kinds]
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name} if "placement" in spec else {"name": name, "labels": {"division": "anyhow"}},
        "spec": {"schedulingMode": mode, "resourceSelectors": selectors, **spec},
    }


def weighted(*weights: int) -> list[dict[str, Any]]:
    return [
        {"cluster": f"member-{place}", "preferences": {"weight": weight}}
        for place, weight in enumerate(weights, 1)
        if weight
    ]


def a_deployment(replicas: int = 4, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web", **labels}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
            },
        },
    }


def test_why_names_the_objects_of_a_policy(user: User) -> None:
    user.apply(a_policy(placement=weighted(2, 1)), a_deployment(3))

    def counted() -> int | None:
        policy = user.fed.api(user.namespace).get("propagationpolicies", "spread")
        return policy.get("status", {}).get("refCount")

    eventually(counted, lambda count: count == 1, what="the policy counts its object")
    assert user.why("propagationpolicy/spread").split() == [
        *("propagationpolicy/spread", "in", f"{user.namespace}:", "applies", "to", "1", "object"),
        *("NAMESPACE", "KIND", "NAME"),
        *(user.namespace, "Deployment", "web"),
    ]


def test_commands_for_a_pod_that_does_not_exist_name_the_members_at_once(user: User) -> None:
    user.apply(a_policy(placement=weighted(2, 1)), a_deployment(3))
    user.until_replicas(2, 1)
    pod = "web-5d4f8c7b9-abcde"
    for arguments in (("logs", pod), ("exec", pod, "--", "date"), ("cp", f"{pod}:/etc/hosts", "/dev/null")):
        done = user.fed.kubectl.run("-n", user.namespace, *arguments, timeout_s=30)
        assert done.returncode
        assert 'Deployment "web" is in member-1, member-2' in done.stderr
        assert f"use kubectl {arguments[0]} with a pod that `kubectl get pods` shows" in done.stderr


def test_a_role_in_the_namespace_is_enough_to_see_its_objects(user: User, tmp_path: Path) -> None:
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}, binding]
    policy = a_policy(placement=weighted(2, 1))
    user.apply(policy | {"spec": {**policy["spec"], "resourceSelectors": selectors}}, a_deployment(3))
    kubeconfig = _with_role(user, "view", tmp_path)

    def seen(*arguments: str) -> str:
        done = fedctl(*arguments, "-n", user.namespace, check=False, KUBECONFIG=str(kubeconfig))
        return done.stdout if not done.returncode else ""

    eventually(lambda: seen("get", "pods").count("Running"), lambda count: count == 3, what="its pods are shown")
    assert seen("logs", "deployment/web", "--tail", "1").count("\n") == 3
    assert seen("describe", "deployment/web").count("Cluster:") == 2
    eventually(
        lambda: [line.split()[1:5] for line in seen("why").splitlines()],
        lambda listed: ["Deployment", "web", "2", "OK"] in listed,
        what="its delivery",
    )
    assert "Scheduled" in seen("why", "deployment/web").splitlines()[0]
    for arguments in (("get", "secrets"), ("get", "nodes"), ("get", "pods", "-A")):
        done = fedctl(*arguments, check=False, KUBECONFIG=str(kubeconfig))
        assert "forbidden" in done.stderr


def test_a_role_in_the_namespace_is_enough_to_plan_its_objects(user: User, tmp_path: Path) -> None:
    user.apply(a_policy(placement=weighted(2, 1)))
    web = tmp_path / "web.json"
    web.write_text(json.dumps(a_deployment(3)))
    for role, code in (("view", 2), ("edit", 1)):
        done = fedctl(
            *("plan", "-f", str(web), "-n", user.namespace),
            check=False,
            KUBECONFIG=str(_with_role(user, role, tmp_path)),
        )
        assert done.returncode == code, done.stdout + done.stderr
    title, _, *rows = done.stdout.splitlines()
    assert title == f"deployment/web in {user.namespace}: created"
    assert [row.split() for row in rows if row.startswith("  member")] == [
        ["member-1", "-", "2", "+2"],
        ["member-2", "-", "1", "+1"],
    ]
    assert "FREE NOW" not in done.stdout
    assert "examined by the host" in done.stdout
    assert not user.look("deployments", "web")
    undone = fedctl(
        *("undo", "deployment/web", "-n", user.namespace),
        check=False,
        KUBECONFIG=str(_with_role(user, "edit", tmp_path)),
    )
    assert "no move is recorded" in undone.stderr
    refused = fedctl(
        *("plan", "-f", str(web), "-n", user.namespace, "--cluster-down", "member-1"),
        check=False,
        KUBECONFIG=str(_with_role(user, "edit", tmp_path)),
    )
    assert refused.returncode == 2
    assert "without --cluster-down" in refused.stderr


def _with_role(user: User, role: str, directory: Path) -> Path:
    """Return the kubeconfig of a user who has the role in the namespace, and no other right."""
    name = f"{user.namespace}-{role}"
    binding = user.kubectl(
        "create", "rolebinding", role, f"--clusterrole={role}", f"--user={name}", "--dry-run=client", "-o", "json"
    )
    user.kubectl("apply", "-f", "-", stdin=binding)
    config = yaml.safe_load(user.fed.kubectl.kubeconfig.read_text())
    for entry in config["users"]:
        entry["user"]["as"] = name
    kubeconfig = directory / name
    kubeconfig.write_text(yaml.safe_dump(config))
    eventually(
        lambda: Kubectl(kubeconfig)("auth", "can-i", "get", "deployments", "-n", user.namespace, check=False).strip(),
        lambda answer: answer == "yes",
        what="the role in force",
    )
    return kubeconfig


def test_pods_of_members_are_listed_and_have_logs(user: User) -> None:
    user.apply(a_policy(placement=weighted(2, 1)), a_deployment(3))
    user.until_replicas(2, 1)
    pods = user.fed.api(user.namespace)
    eventually(lambda: pods.names("pods"), lambda seen: len(seen) == 3, what="the pods of both members")
    rows = [line.split() for line in user.kubectl("get", "pods", "-o", "wide", "--no-headers").splitlines()]
    assert [row[-1] for row in rows] == ["member-1", "member-1", "member-2"]
    assert all(row[0].startswith(f"{row[-1]}-web-") for row in rows)
    user.kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=web", "--timeout=90s")
    assert "starting" in user.kubectl("logs", "deploy/web")
    assert user.fed.kubectl("-n", user.namespace, "exec", rows[-1][0], "--", "echo", "hello") == "hello\n"
    assert "Controlled By:  ReplicaSet/web-" in user.kubectl("describe", "pod", rows[0][0])
    forward = user.fed.kubectl.popen("-n", user.namespace, "port-forward", rows[0][0], ":80")
    try:
        assert forward.stdout is not None
        address = forward.stdout.readline().split()[2]
        answer = httpx.get(f"http://{address}/hello", trust_env=False).text
    finally:
        forward.kill()
        forward.communicate()
    assert answer.startswith(f"pod {rows[0][0].removeprefix('member-1-')}, port 80\nGET /hello HTTP/1.1")


def test_commands_that_need_a_kubelet_are_refused_for_pods_of_the_host(user: User) -> None:
    container = {"name": "main", "image": "nginx:1.27"}
    user.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}})
    for arguments in (("logs", "p"), ("exec", "p", "--", "date"), ("attach", "p")):
        done = user.fed.kubectl.run("-n", user.namespace, *arguments, timeout_s=30)
        assert done.returncode
        assert "this API server has no kubelets" in done.stderr


def test_rollout_status_and_wait_return_when_all_members_are_available(user: User) -> None:
    user.apply(a_policy(placement=weighted(2, 1, 1)), a_deployment(8))
    assert "successfully rolled out" in user.until_rolled_out()
    user.kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=90s")
    ready = {member: obj["status"]["readyReplicas"] for member, obj in user.look("deployments", "web").items()}
    assert ready == {"member-1": 4, "member-2": 2, "member-3": 2}
    assert "8/8" in user.kubectl("get", "deploy", "web")


def test_scaling_divides_replicas_again_and_zero_keeps_the_placement(user: User) -> None:
    user.apply(a_policy(placement=weighted(2, 1, 1)), a_deployment(4))
    user.until_replicas(2, 1, 1)
    user.kubectl("scale", "deploy/web", "--replicas=12")
    user.until_rolled_out()
    assert user.replicas() == {"member-1": 6, "member-2": 3, "member-3": 3}
    user.kubectl("scale", "deploy/web", "--replicas=0")
    eventually(user.replicas, lambda seen: seen == dict.fromkeys(user.members, 0), what="no replicas, but Deployments")
    user.kubectl("scale", "deploy/web", "--replicas=4")
    user.until_rolled_out()
    assert sum(user.replicas().values()) == 4


def test_a_new_image_rolls_out_in_every_member(user: User) -> None:
    user.apply(a_policy(), a_deployment(6))
    user.until_rolled_out()
    before = user.replicas()
    user.kubectl("set", "image", "deploy/web", "web=nginx:1.28")
    user.until_rolled_out()
    assert user.images() == dict.fromkeys(user.members, "nginx:1.28")
    eventually(user.images_of_pods, lambda seen: seen == {"nginx:1.28"}, what="no old pods")
    assert user.replicas() == before, "a new image moves nothing"


def test_deletion_waits_for_the_members(user: User) -> None:
    user.apply(a_policy(), a_deployment())
    user.until_rolled_out()
    user.kubectl("delete", "deploy/web", "--timeout=90s")
    assert user.look("deployments", "web") == {}
    api = user.fed.api(user.namespace)
    eventually(
        lambda: api.names("federatedobjects") + api.names("collectedstatuses"),
        lambda seen: not seen,
        what="nothing of it on the host",
    )


def test_orphaned_workloads_keep_running_in_the_members(user: User) -> None:
    user.apply(a_policy(), a_deployment(3))
    user.until_rolled_out()
    user.kubectl("delete", "deploy/web", "--cascade=orphan", "--timeout=90s")
    assert user.kubectl("get", "deploy", "--ignore-not-found") == ""
    assert sum(user.replicas().values()) == 3
    labels = [obj["metadata"].get("labels", {}) for obj in user.look("deployments", "web").values()]
    assert not any("kubeadmiral.io/managed" in each for each in labels)


def test_a_namespace_is_propagated_and_deleted_in_every_member_with_its_workloads(fed: Federation) -> None:
    kubectl = fed.kubectl
    kubectl("create", "namespace", "flows-team")
    kubectl("label", "namespace", "flows-team", "owner=someone")
    user = User(fed, "flows-team")

    def owners() -> list[str]:
        found = fed.in_members("namespaces", "flows-team").values()
        return [each["metadata"].get("labels", {}).get("owner", "") for each in found]

    eventually(owners, lambda seen: seen == ["someone"] * 3, what="the namespace in every member")
    user.apply(a_policy(), a_deployment())
    user.until_rolled_out()
    kubectl("delete", "namespace", "flows-team", "--timeout=90s")
    eventually(owners, lambda seen: not seen, what="no namespace in any member")


def test_config_maps_and_services_are_propagated_to_every_member(user: User) -> None:
    user.apply(a_policy(mode="Duplicate"))
    user.kubectl("create", "configmap", "settings", "--from-literal=colour=blue")
    user.kubectl("create", "secret", "generic", "password", "--from-literal=p=1234")
    user.kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    colours, passwords = (dict.fromkeys(user.members, data) for data in ({"colour": "blue"}, {"p": "MTIzNA=="}))
    eventually(user.data, lambda seen: seen == colours, what="the ConfigMap")
    eventually(lambda: user.data("password", "secrets"), lambda seen: seen == passwords, what="the Secret")
    services = eventually(lambda: user.look("services", "web").values(), lambda seen: len(seen) == 3, what="Services")
    assert [each["spec"]["ports"][0]["targetPort"] for each in services] == [8080] * 3
    assert all(each["spec"]["clusterIP"] for each in services), "each member gives its own address"
    user.kubectl("patch", "configmap", "settings", "--type=merge", "-p", '{"data": {"colour": null, "size": "xl"}}')
    sizes = {member: {"size": "xl"} for member in user.members}
    eventually(user.data, lambda seen: seen == sizes, what="a key that goes and one that comes")
    user.kubectl("delete", "configmap/settings", "--timeout=90s")
    assert user.data() == {}


def test_a_policy_selects_a_kind_that_the_first_policies_did_not(user: User) -> None:
    """Members of `fedctl up` need no further rights."""
    policy, controller = a_policy(), a_deployment(3)
    policy["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "ReplicationController"}]
    controller |= {"apiVersion": "v1", "kind": "ReplicationController"}
    controller["spec"]["selector"] = controller["spec"]["selector"]["matchLabels"]
    user.apply(policy, controller)
    user.kubectl("wait", "rc/web", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=90s")
    assert sum(each["spec"]["replicas"] for each in user.look("replicationcontrollers", "web").values()) == 3
    user.kubectl("delete", "rc/web", "--timeout=90s")


def test_followers_are_placed_with_their_leader_and_why_shows_it(user: User) -> None:
    deployments = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    user.apply(a_policy(placement=weighted(1, 1), resourceSelectors=deployments))
    user.kubectl("create", "configmap", "settings", "--from-literal=colour=blue")
    deployment = a_deployment()
    pod = deployment["spec"]["template"]["spec"]
    pod["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    user.apply(deployment)
    user.until_replicas(2, 2)
    blue = {"colour": "blue"}
    eventually(user.data, lambda seen: seen == {"member-1": blue, "member-2": blue}, what="it follows")
    output = eventually(
        lambda: [line.split() for line in user.why("configmap/settings").splitlines()],
        lambda seen: ["member-1", "yes", "yes", "-", "OK"] in seen,
        what="delivery",
    )
    assert output[1:3] == [["follows", "deployment/web"], ["goes", "to", "member-1,", "member-2"]]
    user.apply(a_policy(placement=weighted(0, 0, 1), resourceSelectors=deployments))
    eventually(user.data, lambda seen: seen == {"member-3": {"colour": "blue"}}, what="the move")
    user.until_replicas(0, 0, 4)


def test_changing_a_policy_moves_replicas(user: User) -> None:
    user.apply(a_policy(placement=weighted(1, 1)), a_deployment(6))
    user.until_replicas(3, 3, 0)
    user.apply(a_policy(placement=weighted(0, 2, 1)))
    user.until_replicas(0, 4, 2)
    user.until_rolled_out()
    moved = f"-member-1, member-2 3 → 4, +member-3 2 (PropagationPolicy {user.namespace}/spread)"
    events = user.fed.api(user.namespace)
    eventually(
        lambda: events.list("events", fieldSelector="involvedObject.kind=Deployment")["items"],
        lambda seen: any(moved in event["message"] for event in seen),
        what="the event of the move",
    )
    output = user.why("deployment/web")
    assert "rejected by PlacementFilter" in next(row for row in output.splitlines() if row.startswith("member-1"))


def test_why_shows_what_each_cluster_got_and_refused(user: User) -> None:
    rules = [
        {
            "targetClusters": {"clusters": ["member-2"]},
            "overriders": {"jsonpatch": [{"path": "/spec/nothing/here", "operator": "replace", "value": 1}]},
        }
    ]
    override = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": "broken"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "overrideRules": rules},
    }
    user.apply(a_policy(placement=weighted(1, 1)), override, a_deployment())
    rows = eventually(
        lambda: [line.split(maxsplit=5) for line in user.why("deploy/web").partition("\ndelivery\n")[2].splitlines()],
        lambda seen: ["member-1", "2", "yes", "2", "OK"] in seen and "ApplyOverridesFailed" in str(seen),
        what="the delivery to member-1, and the refusal for member-2",
    )
    assert rows[1] == ["CLUSTER", "WANTED", "APPLIED", "READY", "STATUS"]
    (refused,) = [row for row in rows if row[0] == "member-2"]
    assert refused[1:5] == ["yes", "no", "-", "ApplyOverridesFailed"]
    assert "nothing" in refused[5]
    eventually(
        lambda: user.kubectl("get", "fo", "-o", "wide").splitlines(),
        lambda rows: ["False", "CheckClusters"] in [row.split()[1:3] for row in rows if row.startswith("web-")],
        what="the summary of the statuses",
    )


def test_a_policy_label_takes_precedence_over_resource_selectors(user: User) -> None:
    user.apply(a_policy("selects", placement=weighted(1)), a_policy("labelled", placement=weighted(0, 0, 1)))
    labelled = user.fed.kubectl.json("get", "pp", "labelled", "-n", user.namespace)
    assert labelled["spec"]["resourceSelectors"]
    user.kubectl("patch", "pp", "labelled", "--type=merge", "-p", '{"spec": {"resourceSelectors": null}}')
    user.apply(a_deployment(3))
    user.until_replicas(3)
    user.kubectl("label", "deploy/web", "kubeadmiral.io/propagation-policy-name=labelled")
    user.until_replicas(0, 0, 3)
    user.kubectl("label", "deploy/web", "kubeadmiral.io/propagation-policy-name-")
    user.until_replicas(3)


def test_an_object_without_a_feasible_cluster_reports_the_reason(user: User) -> None:
    user.apply(a_policy(clusterSelector={"region": "atlantis"}), a_deployment())

    def scheduled() -> dict[str, Any]:
        status = user.fed.api(user.namespace).get("deployments", "web").get("status", {})
        conditions = status.get("conditions", [])
        found: dict[str, Any] = next((c for c in conditions if c["type"] == "Scheduled"), {})
        return found

    condition = eventually(scheduled, lambda seen: seen.get("status") == "False", what="Scheduled=False")
    assert "member-1" in condition["message"] or "cluster" in condition["message"]
    described = eventually(
        lambda: user.kubectl("describe", "deploy", "web"), lambda seen: "Warning" in seen, what="an event as well"
    )
    assert "Scheduled" in described
    assert "rejected by ClusterAffinity" in user.why("deploy/web")
    user.apply(a_policy(clusterSelector={"region": "shanghai"}))
    user.until_replicas(0, 0, 4)
    user.until_rolled_out()


def test_a_deployment_without_a_policy_stays_on_the_host(user: User) -> None:
    user.apply(a_deployment())
    user.kubectl("label", "deploy/web", "kubeadmiral.io/propagation-policy-name=later")
    output = eventually(
        lambda: user.kubectl("describe", "deploy/web"), lambda seen: "later" in seen.split("Events:")[1]
    )
    assert "Warning" in output
    user.apply({**a_policy("later"), "spec": {"schedulingMode": "Divide"}})
    user.until_rolled_out()
    assert sum(user.replicas().values()) == 4


def test_a_manual_change_in_a_member_is_reverted(user: User) -> None:
    user.apply(a_policy(placement=weighted(1, 1)), a_deployment(4))
    user.until_rolled_out()
    member = user.fed.member("member-1")
    member("scale", "deploy/web", "--replicas=9", "-n", user.namespace)
    user.until_replicas(2, 2)
    member("delete", "deploy", "web", "-n", user.namespace)
    user.until_replicas(2, 2)
    member("annotate", "deploy", "web", "mine=stays", "-n", user.namespace)
    user.kubectl("set", "image", "deploy/web", "web=nginx:1.28")
    user.until_rolled_out()
    assert user.look("deployments", "web")["member-1"]["metadata"]["annotations"]["mine"] == "stays"
