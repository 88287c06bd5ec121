"""Attacks on plans for users of namespaces: rights of others, objects and clusters that are not theirs, bombs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from tests.support.federation import Federation, Kubectl, eventually, fedctl
from tests.support.manifests import a_deployment, a_policy
from tests.support.shared import new_namespace
from tests.support.tenants import ROLES, Tenants
from tests.support.world import World, a_world
from tests.unit.web.test_delivery import served

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, SECRETS, Object
from federation.features.catalogue import decision_chain
from federation.plans.inventory import read_inventory

PATH = "/federation/v1/plan"


def document(manifest: Object, **more: str) -> Object:
    return {"origin": "web.yaml", "manifest": {**manifest, "metadata": {**manifest["metadata"], **more}}}


WEB = document(a_deployment("web", replicas=3))


@asynccontextmanager
async def hosted(directory: Path) -> AsyncIterator[tuple[World, Tenants]]:
    """Run a host of two members, with roles in the namespace `default` and objects of a rival in another one."""
    async with a_world(members=("east", "west"), has_workloads=False) as world, AsyncExitStack() as stack:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(NAMESPACES, {"metadata": {"name": "rival"}})
        secret = {"metadata": {"name": "own", "namespace": "default"}, "stringData": {"password": "oldsecret"}}
        await world.create(SECRETS, secret)
        parts, _ = await stack.enter_async_context(served(world, directory))
        host = Tenants(parts, stack)
        for user, role in ROLES.items():
            await host.bind(user, role)
        yield world, host


async def plan(client: httpx.AsyncClient, *documents: Any, **more: Any) -> httpx.Response:
    return await client.post(PATH, json={"documents": list(documents), **more})


async def test_a_role_in_a_namespace_plans_its_own_objects_and_writes_nothing(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (world, host):
        editor = await host.client("editor")
        answer = await plan(editor, WEB, explain=True)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        (obj,) = found["objects"]
        assert (obj["name"], obj["action"]) == ("web", "create")
        assert {row["cluster"]: row["after"]["replicas"] for row in obj["clusters"]} == {"east": 3}
        assert obj["explanation"]["outcome"] == "Scheduled"
        assert (found["clusters"], found["stranded"]) == ([], [])
        assert await world.find(DEPLOYMENTS, "web") is None

        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        (scaled,) = (await plan(editor, replicas=["deployment/web=9"])).json()["objects"]
        assert [row["after"]["replicas"] for row in scaled["clusters"]] == [9]
        (gone,) = (await plan(editor, deletions=["deployment/web"])).json()["objects"]
        assert gone["action"] == "delete"
        # A change of a policy shows the objects that it moves.
        moved = await plan(editor, document(a_policy({"west": 1})))
        assert [(row["cluster"], row["after"] is None) for row in moved.json()["objects"][0]["clusters"]] == [
            ("east", True),
            ("west", False),
        ]
        kept = await world.find(DEPLOYMENTS, "web")
        assert kept is not None
        assert kept["spec"]["replicas"] == 3


def patch(kind: str, name: str, *, namespace: str = "default", group: str = "", **annotations: str) -> Object:
    change = {"metadata": {"annotations": annotations}}
    return {"group": group, "kind": kind, "namespace": namespace, "name": name, "patch": change}


SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
CLUSTER = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": {"name": "east"}}
PEN = {
    "apiVersion": CLUSTER_PROPAGATION_POLICIES.api_version,
    "kind": "ClusterPropagationPolicy",
    "metadata": {"name": "all"},
    "spec": {"schedulingMode": "Duplicate"},
}


@pytest.mark.parametrize(
    ("user", "body", "code", "says"),
    [
        ("viewer", {"documents": [WEB]}, 403, "cannot patch"),
        ("viewer", {"deletions": ["propagationpolicy/divide"]}, 403, "cannot delete"),
        ("nobody", {"documents": [WEB]}, 403, "cannot get"),
        ("nobody", {"deletions": ["secret/own"]}, 403, "cannot get"),
        ("editor", {"documents": [document(SETTINGS, namespace="rival")]}, 403, "cannot get"),
        ("editor", {"replicas": ["deployment/vault=9"], "namespace": "rival"}, 403, "cannot get"),
        ("editor", {"deletions": ["deployment/vault.rival"]}, 403, "cannot get"),
        ("editor", {"documents": [{"manifest": CLUSTER}]}, 403, "cannot get"),
        ("editor", {"documents": [{"manifest": PEN}]}, 403, "cannot get"),
        ("editor", {"deletions": ["federatedcluster/east"]}, 403, "cannot get"),
        ("editor", {"deletions": ["namespace/default"]}, 403, "cannot get"),
        ("editor", {"documents": [document(SETTINGS, namespace="../kube-system")]}, 400, "metadata.namespace"),
        ("editor", {"documents": [document(SETTINGS, name="../../x")]}, 400, "metadata.name"),
        ("editor", {"documents": [{"manifest": {"kind": "List", "apiVersion": "v1", "items": [3]}}]}, 400, "mapping"),
        ("editor", {"documents": [{"manifest": {"kind": 3}}]}, 400, "kind"),
        ("editor", {"documents": [WEB, WEB]}, 400, "name it once"),
        ("viewer", {"patches": [patch("ServiceAccount", "default")]}, 403, "cannot patch"),
        ("nobody", {"patches": [patch("Secret", "own")]}, 403, "cannot get"),
        ("editor", {"patches": [patch("Secret", "own", namespace="rival")]}, 403, "cannot get"),
        ("editor", {"patches": [patch("Secret", "../../own")]}, 400, "name"),
        ("editor", {"patches": [patch("Secret", "own", namespace="default/x")]}, 400, "namespace"),
        ("editor", {"patches": [patch("FederatedCluster", "east", group="core.kubeadmiral.io")]}, 400, "not federated"),
        ("editor", {"patches": [patch("Secret", "own")] * 2}, 400, "name it once"),
        ("editor", {"patches": [patch("Secret", "own")] * 120, "documents": [WEB] * 120}, 400, "200"),
        ("editor", {"documents": [WEB] * 201}, 400, "200"),
        ("editor", {"replicas": ["deployment/web=1"] * 150, "deletions": ["deployment/web"] * 150}, 400, "200"),
        (
            "editor",
            {"documents": [{"manifest": {"kind": "List", "apiVersion": "v1", "items": [SETTINGS] * 201}}]},
            400,
            "200",
        ),
        ("editor", {"down": ["east"]}, 400, "down"),
        ("editor", {"documents": [{"origin": "x" * 201, "manifest": SETTINGS}]}, 400, "origin"),
        ("editor", {}, 400, "documents"),
        ("editor", [], 400, "body"),
    ],
)
async def test_nobody_plans_what_he_may_not_write(tmp_path: Path, user: str, body: Any, code: int, says: str) -> None:
    async with hosted(tmp_path) as (world, host):
        answer = await (await host.client(user)).post(PATH, json=body)
        assert (answer.status_code, says in answer.json()["message"]) == (code, True), answer.text
        assert "oldsecret" not in answer.text
        assert (await world.user.list(CONFIGMAPS, "rival")).items == []


async def test_the_answer_shows_no_object_cluster_or_value_that_is_not_the_users(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (world, host):
        kinds = [{"apiVersion": kind, "kind": name} for kind, name in (("v1", "Secret"), ("apps/v1", "Deployment"))]
        await world.create(
            PROPAGATION_POLICIES,
            a_policy({"east": 1}, resourceSelectors=kinds) | {"metadata": {"name": "by-kind", "namespace": "default"}},
        )
        await world.create(CLUSTER_PROPAGATION_POLICIES, {**PEN, "metadata": {"name": "hidden-policy"}})
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        # He may write policies, and see Deployments. He may not see Secrets.
        await host.grant(
            "planner",
            {
                "verbs": ["get", "patch", "create"],
                "apiGroups": ["core.kubeadmiral.io"],
                "resources": ["propagationpolicies"],
            },
            {"verbs": ["get", "list", "update"], "apiGroups": ["apps"], "resources": ["deployments"]},
            {"verbs": ["update"], "apiGroups": [""], "resources": ["secrets"]},
        )
        policy = a_policy({"west": 1}, resourceSelectors=kinds)
        policy["metadata"] = {"name": "by-kind", "namespace": "default"}
        answer = await plan(await host.client("planner"), document(policy))
        assert answer.status_code == 200, answer.text
        assert {obj["kind"] for obj in answer.json()["objects"]} == {"Deployment"}
        assert any("secrets may change too" in text for text in answer.json()["problems"])
        for hidden in ("oldsecret", "b2xkc2VjcmV0", "hidden-policy", "rival", '"own"'):
            assert hidden not in answer.text
        # Whoever may write the Secret sees that it changes, and no value: answers end up in logs.
        own = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "own"},
            "stringData": {"password": "topsecret"},
        }
        answer = await plan(await host.client("editor"), document(own))
        assert answer.status_code == 200, answer.text
        assert "***" in answer.text
        for hidden in ("topsecret", "dG9wc2VjcmV0", "b2xkc2VjcmV0"):
            assert hidden not in answer.text


async def test_a_plan_reads_the_namespaces_of_its_changes_only() -> None:
    async with a_world(members=("east",), has_workloads=False) as world:
        await world.create(NAMESPACES, {"metadata": {"name": "rival"}})
        for namespace in ("default", "rival"):
            policy = a_policy({"east": 1})
            policy["metadata"]["namespace"] = namespace
            await world.create(PROPAGATION_POLICIES, policy)
            web = a_deployment("web", replicas=1)
            web["metadata"]["namespace"] = namespace
            await world.create(DEPLOYMENTS, web)
        await world.settle()
        found = await read_inventory(world.user, decision_chain(), frozenset(("default",)))
        assert {obj["metadata"].get("namespace") for obj in found.federated()} == {"default"}
        assert [policy["metadata"]["namespace"] for policy in found.list(PROPAGATION_POLICIES)] == ["default"]
        assert [namespace["metadata"]["name"] for namespace in found.list(NAMESPACES)] == ["default"]
        assert len(found.list(FEDERATED_CLUSTERS)) == 1


async def test_a_plan_is_bounded(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (world, host):
        editor = await host.client("editor")
        assert (await editor.post(PATH, content=b"[" * (1 << 20))).status_code == 400
        assert (await editor.post(PATH, content=b"x" * ((1 << 20) + 1))).status_code == 413
        big = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"a": "x" * 900_000}}
        for number in range(40):
            cluster = {
                **CLUSTER,
                "metadata": {"name": f"c{number}"},
                "spec": {"apiEndpoint": "https://x", "secretRef": {"name": "x"}},
            }
            await world.user.create(FEDERATED_CLUSTERS, cluster)
        answer = await plan(editor, document(big))
        assert (answer.status_code, "plan fewer" in answer.text) == (400, True), answer.text
        both = await asyncio.gather(plan(editor, WEB), plan(editor, WEB))
        assert sorted(answer.status_code for answer in both) == [200, 429]
        assert (await plan(editor, WEB)).status_code == 200
        assert (await editor.get(PATH)).status_code in (403, 405)
        assert (await editor.post(f"{PATH}?dryRun=All", json={"documents": [WEB]})).status_code == 400


def planning(*verbs: str, groups: Any = ("*",), resources: Any = ("*",)) -> Object:
    return {"verbs": [*verbs, "plan"], "apiGroups": list(groups), "resources": list(resources)}


async def test_the_verb_plan_allows_plans_and_no_write(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (world, host):
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        await host.bind("reviewer", "view")
        await host.grant("reviewer", planning())
        reviewer = await host.client("reviewer")
        answer = await plan(reviewer, document(a_deployment("new", replicas=3)), manifests=False, basis=True)
        assert answer.status_code == 200, answer.text
        assert answer.json()["objects"][0]["action"] == "create"
        assert '"image"' not in answer.text
        (gone,) = (await plan(reviewer, deletions=["deployment/web"])).json()["objects"]
        assert (gone["action"], gone["lostAtWorst"]) == ("delete", 3)
        # The same writes are refused, as dry runs, too.
        new = a_deployment("new", replicas=3)
        address = "/apis/apps/v1/namespaces/default/deployments"
        refused = [
            await reviewer.post(address, json=new),
            await reviewer.post(f"{address}?dryRun=All", json=new),
            await reviewer.patch(
                f"{address}/web?fieldManager=x&dryRun=All",
                json=new,
                headers={"content-type": "application/merge-patch+json"},
            ),
            await reviewer.delete(f"{address}/web"),
        ]
        assert [each.status_code for each in refused] == [403] * 4
        # What he may not read he may not plan: a plan would tell what is there.
        own = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"}, "stringData": {"password": "new"}}
        answer = await plan(reviewer, document(own))
        assert (answer.status_code, "cannot get" in answer.text) == (403, True), answer.text
        assert (await plan(reviewer, document(SETTINGS, namespace="rival"))).status_code == 403


async def test_a_plan_sends_no_request_to_an_address_of_a_reviewer(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (_, host):
        await host.grant("reviewer", planning("get", "list"), namespace="")
        webhook = {
            "apiVersion": CLUSTER["apiVersion"],
            "kind": "SchedulerPluginWebhookConfiguration",
            "metadata": {"name": "evil"},
            "spec": {"urlPrefix": "http://127.0.0.1:1/", "filterPath": "/", "httpTimeout": "1s"},
        }
        answer = await plan(await host.client("reviewer"), {"manifest": webhook})
        assert (answer.status_code, "cannot patch" in answer.text) == (403, True), answer.text


async def test_the_basis_of_a_plan_shows_no_cluster_policy_or_object_that_is_not_the_users(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (world, host):
        kinds = [{"apiVersion": kind, "kind": name} for kind, name in (("v1", "Secret"), ("apps/v1", "Deployment"))]
        pen = {**PEN, "metadata": {"name": "hidden-policy"}, "spec": {**PEN["spec"], "resourceSelectors": kinds}}
        await world.create(CLUSTER_PROPAGATION_POLICIES, pen)
        web = a_deployment("web", replicas=3)
        web["metadata"]["labels"] = {"kubeadmiral.io/cluster-propagation-policy-name": "hidden-policy"}
        await host.bind("reviewer", "view")
        await host.grant("reviewer", planning())
        answer = await plan(await host.client("reviewer"), document(web), basis=True, manifests=False)
        assert answer.status_code == 200, answer.text
        basis = answer.json()["basis"]
        assert {each["resource"]["plural"] for each in basis["seen"]} == {"deployments", "federatedobjects"}
        assert basis["hidden"]
        assert "clusters" not in basis
        assert "hidden-policy" not in orjson.dumps(basis).decode()
        # Who may list clusters sees them; an administrator sees everything.
        await host.bind("admin", "cluster-admin", namespace="")
        everything = (await plan(await host.client("admin"), document(web), basis=True)).json()["basis"]
        assert set(everything["clusters"]) == {"east", "west"}
        assert "hidden" not in everything


@pytest.mark.slow("fedctl moves, rebalances and imports on a running federation")
def test_a_role_in_a_namespace_moves_and_imports_its_workloads(shared_federation: Federation, tmp_path: Path) -> None:
    """Plans depend on all clusters and quotas, which such a role may not list; the host computes them."""
    fed, namespace = shared_federation, new_namespace(shared_federation, "tenant")
    kubectl = fed.kubectl
    kubectl("create", "serviceaccount", "tenant", "-n", namespace)
    subject = f"--serviceaccount={namespace}:tenant"
    kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", subject, "-n", namespace)
    connection = yaml.safe_load(kubectl.kubeconfig.read_text())
    token = kubectl("create", "token", "tenant", "-n", namespace).strip()
    connection["users"][0]["user"] = {"token": token}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(connection))
    own = ("--kubeconfig", str(tmp_path / "kubeconfig"), "-n", namespace)
    policy = a_policy(
        {"member-1": 1, "member-2": 1}, resourceSelectors=[{"apiVersion": "apps/v1", "kind": "Deployment"}]
    )
    policy = {"apiVersion": PROPAGATION_POLICIES.api_version, "kind": "PropagationPolicy", **policy}
    web, legacy = a_deployment("web", replicas=2), a_deployment("legacy", replicas=1)
    for each in (policy, web, legacy):
        each["metadata"]["namespace"] = namespace
    tenant = Kubectl(tmp_path / "kubeconfig")
    eventually(
        lambda: tenant("auth", "can-i", "create", "propagationpolicies", "-n", namespace, check=False).strip(),
        lambda answer: answer == "yes",
    )
    tenant.apply(policy, {"apiVersion": "apps/v1", "kind": "Deployment", **web})
    eventually(
        lambda: sorted(fed.in_members("deployments", "web", namespace)), lambda it: it == ["member-1", "member-2"]
    )

    shown = fedctl("migrate", "deployment/web", "--to", "member-3", "--dry-run", *own).stdout
    assert "member-3" in shown
    assert "not checked: other parts of the application" in shown
    moved = fedctl("migrate", "deployment/web", "--to", "member-3", *own).stdout
    assert "running: deployment/web" in moved
    assert list(fed.in_members("deployments", "web", namespace)) == ["member-3"]
    refused = fedctl("migrate", "deployment/web", "--to", "nowhere", *own, check=False)
    assert (refused.returncode, "no cluster can take it" in refused.stderr) == (1, True)
    assert "running" in fedctl("migrate", "deployment/web", "--end", *own).stdout
    assert "nothing changes" in fedctl("rebalance", "deployment/web", *own).stdout

    member = Kubectl(fed.directory / "members" / "member-1.kubeconfig")
    member.apply({"apiVersion": "apps/v1", "kind": "Deployment", **legacy})
    arguments = ("import", "--from-cluster", "member-1", "deployment/legacy", *own)
    assert "federatedclusters/proxy" in fedctl(*arguments, check=False).stderr
    rule = ("--verb=get", "--resource=federatedclusters.core.kubeadmiral.io/proxy", "--resource-name=member-1")
    kubectl("create", "clusterrole", namespace, *rule)
    kubectl("create", "clusterrolebinding", namespace, f"--clusterrole={namespace}", subject)
    try:
        imported = eventually(lambda: fedctl(*arguments, check=False), lambda done: done.returncode == 0)
        assert "deployment/legacy imported from member-1" in imported.stdout
    finally:
        kubectl("delete", "clusterrole,clusterrolebinding", namespace)
