"""Attack: a tenant, or somebody who may write Projects, wants more than he was given."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from tests.attacks.test_ui import OWN, logged_in
from tests.attacks.test_ui_actions import submit as submit_form
from tests.scenarios.test_cron_autoscaling import a_cron
from tests.scenarios.test_job_queues import a_cluster_queue, a_flavor, a_queue, a_queued_job
from tests.scenarios.test_kubefed import federated
from tests.scenarios.test_kueue_dispatch import MEMBERS, a_workload, events, nominated, submit, with_kueue
from tests.scenarios.test_projects import a_project
from tests.scenarios.test_quotas import a_quota
from tests.scenarios.test_suspensions import a_suspension
from tests.scenarios.test_united_deployments_across_clusters import V1ALPHA1, a_subset, a_united
from tests.scenarios.test_volumes import a_stateful_set
from tests.support.cputime import cpu_s
from tests.support.crawling import Frontier
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.tenants import MERGE, OURS, RBAC, Tenants, rule, tenants
from tests.support.world import World, a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.web.test_delivery import served
from tools.generate_tenancy import kinds

from federation.api import names
from federation.api.kubefedkinds import FEDERATED_KINDS
from federation.api.resources import (
    CAPACITY_FLAVORS,
    CHANGE_FREEZES,
    CLUSTER_DELIVERY_SUSPENSIONS,
    CLUSTER_DISRUPTION_BUDGETS,
    CLUSTER_JOB_QUEUES,
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    CRON_AUTOSCALERS,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    JOB_QUEUES,
    OVERRIDE_POLICIES,
    PROJECTS,
    PROPAGATION_POLICIES,
    UNITED_DEPLOYMENTS,
)
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import (
    CLUSTER_ROLES,
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    ROLE_BINDINGS,
    SERVICES,
    STATEFUL_SETS,
    Object,
    Resource,
)
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.verbs.paging import Continuation, decode_token, encode_token
from federation.planning.projects.projectindex import ProjectIndex
from federation.web.ui.credentials import Credentials

GROUP = "rbac.authorization.k8s.io"
CORE = PROJECTS.api_version
ALICE = {"kind": "User", "name": "alice"}
GIVER = (
    rule("*", "projects,federatedresourcequotas"),
    rule("get,list,watch", "federatedclusters"),
    rule("create,patch,get", "namespaces", ""),
    rule("create,patch", "rolebindings,clusterroles,clusterrolebindings", GROUP),
)
"""All that it takes to write what a Project makes, and no role in any namespace."""


class Host:
    """A running federation, and clients of its users."""

    def __init__(self, world: World, served: Tenants) -> None:
        self.world = world
        self.served = served

    async def post(self, project: Object, user: str, *groups: str) -> httpx.Response:
        return await (await self.served.client(user, *groups)).post(f"{OURS}/projects", json=project)

    async def ready(self, name: str = "shop") -> tuple[str, str]:
        """Return reason and message of the condition of a Project that was looked at."""

        async def look() -> Any:
            project = await self.world.user.get(PROJECTS, name, "")
            return conditions.find((project.get("status") or {}).get("conditions"), "Ready")

        found = await self.world.until(look)
        return found["reason"], found["message"]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with a_world() as world, tenants(tmp_path, world.registry) as served:
        yield Host(world, served)


def with_members(role: str = "edit", **more: Any) -> Object:
    members = [{"role": role, "subjects": [ALICE]}]
    return a_project("east", "north", namespaces=("shop", "shop-test"), members=members, **more)


@pytest.mark.slow("a world and its API server")
async def test_nobody_gives_through_a_project_what_he_does_not_have(host: Host) -> None:
    """One world for all attempts: without rights, with rights to write but none to give, and with all of them."""
    await host.served.grant("nobody", rule("*", "projects"), namespace="")
    answer = await host.post(with_members(quota={"perNamespace": {"cpu": "4"}}), "nobody")
    assert answer.status_code == 403, answer.text
    for lacking in ("get federatedclusters", "create namespaces", 'patch namespaces "shop"'):
        assert lacking in answer.json()["message"]

    await host.served.grant("giver", *GIVER, namespace="")
    answer = await host.post(with_members(), "giver")
    assert answer.status_code == 403, answer.text
    assert "attempting to grant RBAC permissions not currently held" in answer.json()["message"]
    assert [item["metadata"]["name"] for item in (await host.world.user.list(PROJECTS)).items] == []

    # Who holds `edit` everywhere gives `edit`, and not `admin`.
    await host.served.bind("giver", "edit", namespace="")
    assert (await host.post(with_members("admin"), "giver")).status_code == 403
    answer = await host.post(with_members(quota={"perNamespace": {"cpu": "4"}}), "giver")
    assert answer.status_code == 201, answer.text
    assert await host.ready() == ("Applied", "all of it is in force")
    binding = await host.world.user.get(ROLE_BINDINGS, "project-shop-edit", "shop-test")
    assert (binding["roleRef"]["name"], binding["subjects"]) == ("edit", [{"apiGroup": GROUP, **ALICE}])
    quota = await host.world.user.get(FEDERATED_RESOURCE_QUOTAS, "project-shop", "shop")
    assert quota["spec"] == {"overall": {"cpu": "4"}}
    shown = (await host.world.user.get(CLUSTER_ROLES, "federation:project:shop", ""))["rules"]
    assert [each["resourceNames"] for each in shown] == [["shop"], ["east", "north"]]

    # A right that the giver loses is not given again, and the Project says so.
    await host.world.user.delete(ROLE_BINDINGS, "project-shop-edit", "shop")
    root = await host.served.root()
    assert (await root.delete(f"{RBAC}/clusterrolebindings/giver-edit")).status_code == 200
    await host.world.pass_time(310)
    reason, message = await host.ready()
    assert reason == "Forbidden"
    assert "not currently held" in message
    assert await host.world.find(ROLE_BINDINGS, "project-shop-edit", "shop") is None


@pytest.mark.slow("a world and its API server")
async def test_a_namespace_is_in_one_project_and_no_tenant_moves_it(host: Host) -> None:
    root = ("root", "system:masters")
    assert (await host.post(with_members("admin"), *root)).status_code == 201
    assert (await host.ready())[0] == "Applied"
    second = a_project("west", name="other", namespaces=("shop",))
    answer = await host.post(second, *root)
    assert answer.status_code == 422
    assert "the namespace belongs to project shop" in answer.json()["message"]

    # Who may not read projects learns no name of another one.
    await host.served.grant("giver", rule("create", "projects"), namespace="")
    answer = await host.post(second, "giver")
    assert "the namespace belongs to another project" in answer.json()["message"]

    # An administrator of the namespace changes labels and ownership of what he may write: it changes nothing.
    await host.served.until(lambda: ("shop", "project-shop-admin") in host.served.parts.authorizer._bindings)
    alice = await host.served.client("alice", **MERGE)
    assert (await alice.patch(f"{OURS}/projects/shop", json={"spec": {"namespaces": ["x"]}})).status_code == 403
    moved = {"metadata": {"labels": {"federation.kubeadmiral.io/project": "other"}}}
    assert (await alice.patch("/api/v1/namespaces/shop", json=moved)).status_code == 403
    taken = await alice.patch(f"{RBAC}/namespaces/shop/rolebindings/project-shop-admin", json={"subjects": []})
    assert taken.status_code == 200
    await host.world.pass_time(310)
    binding = await host.world.user.get(ROLE_BINDINGS, "project-shop-admin", "shop")
    assert binding["subjects"] == [{"apiGroup": GROUP, **ALICE}]

    # The system's namespaces are nobody's.
    answer = await host.post(a_project("east", name="third", namespaces=("kube-system",)), *root)
    assert answer.status_code == 422, answer.text


@pytest.mark.slow("a world and its API server")
async def test_a_lead_who_may_patch_one_project_takes_no_limit_out_of_it(host: Host) -> None:
    """A quota, the role of others, and the namespace itself, which could be in all clusters without its project."""
    project = with_members(quota={"perNamespace": {"cpu": "4"}})
    assert (await host.post(project, "root", "system:masters")).status_code == 201
    await host.ready()
    named = {**rule("get,list,watch", "federatedclusters"), "resourceNames": ["east", "north"]}
    own = {**rule("patch,update", "projects"), "resourceNames": ["shop"]}
    quotas = rule("create,patch", "federatedresourcequotas")
    await host.served.grant("lead", own, named, quotas, *GIVER[2:], namespace="")
    await host.served.bind("lead", "edit", namespace="")
    lead = await host.served.client("lead", **MERGE)
    path = f"{OURS}/projects/shop"
    answer = await lead.patch(path, json={"spec": {"clusters": {"names": ["east"]}}})
    assert answer.status_code == 200, answer.text
    for change, lacking in (
        ({"quota": None}, 'delete federatedresourcequotas.core.kubeadmiral.io "project-shop"'),
        ({"members": None}, 'delete rolebindings.rbac.authorization.k8s.io "project-shop-edit"'),
        ({"namespaces": ["shop-test"]}, "list federatedclusters.core.kubeadmiral.io;"),
    ):
        answer = await lead.patch(path, json={"spec": change})
        assert answer.status_code == 403, answer.text
        assert lacking in answer.json()["message"]
    root = await host.served.root()
    answer = await root.patch(path, json={"spec": {"namespaces": ["shop"], "quota": None}}, headers=MERGE)
    assert answer.status_code == 200, answer.text


@pytest.mark.slow("a world and its API server")
async def test_a_deleted_project_leaves_namespaces_and_takes_its_rights(host: Host) -> None:
    root = await host.served.root()
    await host.post(with_members(), "root", "system:masters")
    await host.ready()
    smaller = {"spec": {"namespaces": ["shop"]}}
    assert (await root.patch(f"{OURS}/projects/shop", json=smaller, headers=MERGE)).status_code == 200
    await host.world.until_gone(ROLE_BINDINGS, "project-shop-edit", "shop-test")
    assert (await root.delete(f"{OURS}/projects/shop")).status_code == 200
    await host.world.until_gone(ROLE_BINDINGS, "project-shop-edit", "shop")
    await host.world.until_gone(CLUSTER_ROLES, "federation:project:shop", "")
    for name in ("shop", "shop-test"):
        namespace = await host.world.user.get(NAMESPACES, name, "")
        assert "federation.kubeadmiral.io/project" not in namespace["metadata"].get("labels", {})
        assert "deletionTimestamp" not in namespace["metadata"]


def names_in(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


@pytest.mark.slow("a world and its API server")
async def test_a_member_reads_the_clusters_of_his_project_and_no_name_of_another_one(host: Host) -> None:
    """Lists, pages, their tokens, watches, selectors and single objects."""
    clusters = f"{OURS}/federatedclusters"
    alice = await host.served.client("alice")
    assert (await alice.get(clusters)).status_code == 403
    project = a_project("east", "west", members=[{"role": "edit", "subjects": [ALICE]}], namespaces=("shop",))
    assert (await host.post(project, "root", "system:masters")).status_code == 201
    await host.ready()
    await host.served.until(lambda: ("", "federation:project:shop") in host.served.parts.authorizer._bindings)

    assert names_in(await alice.get(clusters)) == ["east", "west"]
    assert names_in(await alice.get(f"{OURS}/projects")) == ["shop"]
    for query in ("fieldSelector=metadata.name=north", "fieldSelector=metadata.name!=east,metadata.name!=west"):
        assert names_in(await alice.get(f"{clusters}?{query}")) == []
    first = await alice.get(f"{clusters}?limit=1")
    token = first.json()["metadata"]["continue"]
    assert "north" not in str(decode_token(token, ""))
    assert names_in(await alice.get(clusters, params={"limit": 1, "continue": token})) == ["west"]
    forged = encode_token(Continuation(0, "/federatedclusters.core.kubeadmiral.io/north"))
    assert "north" not in [*(await alice.get(clusters, params={"continue": forged})).text.split('"')]
    north = await alice.get(f"{clusters}/north")
    missing = await alice.get(f"{clusters}/none")
    assert (north.status_code, north.text.replace("north", "none")) == (missing.status_code, missing.text)
    for verb in ("PUT", "PATCH", "DELETE"):
        assert (await alice.request(verb, f"{clusters}/east", json={}, headers=MERGE)).status_code == 403
    assert (await alice.delete(clusters)).status_code == 403

    # A watch that began with more clusters ends, and the next list has fewer.
    watching = asyncio.ensure_future(alice.get(f"{clusters}?watch=1&timeoutSeconds=20&resourceVersion=0"))
    root = await host.served.root()
    fewer = {"spec": {"clusters": {"names": ["west"]}}}
    assert (await root.patch(f"{OURS}/projects/shop", json=fewer, headers=MERGE)).status_code == 200

    async def shown() -> list[str]:
        return names_in(await alice.get(clusters))

    await host.world.until_equal(shown, ["west"])
    await host.world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"told": "yes"}}}, namespace="")
    events = (await watching).text
    assert '"code":410' in events
    assert '"told"' not in events
    assert '"name":"north"' not in events


@pytest.mark.slow("a world and its API server")
async def test_no_wish_of_a_tenant_brings_anything_into_a_cluster_of_others(host: Host) -> None:
    """By name in policies, annotations and overrides, with followers, by migrations and undone moves."""
    world = host.world
    await world.create(PROJECTS, a_project("east", "north"))
    policy = a_policy({"west": 5, "east": 1}, name="divide")
    policy["spec"] |= {"tolerations": [{"operator": "Exists"}], "stickyCluster": True}
    await world.create(PROPAGATION_POLICIES, policy)
    await world.create(OVERRIDE_POLICIES, an_override("west", "/spec/replicas", 7))
    placed = orjson.dumps([{"cluster": "west"}, {"cluster": "east"}]).decode()
    moved = {"workloadMigrations": [{"cluster": "east", "validUntil": "2099-01-01T00:00:00Z"}]}
    wishes = {
        "named": {},
        "placements": {names.PLACEMENTS: placed},
        "selector": {names.CLUSTER_SELECTOR: "kubernetes.io/hostname=west"},
        "moved": {names.MIGRATION_CONFIGURATION: orjson.dumps(moved).decode()},
        "undone": {names.UNDO: "all"},
    }
    for name, annotations in wishes.items():
        deployment = a_deployment(name, replicas=2)
        deployment["metadata"].setdefault("annotations", {}).update(annotations)
        deployment["spec"]["template"]["spec"]["volumes"] = [{"name": "c", "configMap": {"name": "config"}}]
        await world.create(DEPLOYMENTS, deployment)
    await world.create(CONFIGMAPS, {"metadata": {"name": "config", "namespace": "default"}, "data": {"a": "b"}})
    await world.until_replicas("named", {"east": 2})
    await world.settle()

    west = world.members["west"].admin
    for resource in (DEPLOYMENTS, CONFIGMAPS):
        found = [each["metadata"]["name"] for each in (await west.list(resource, "default")).items]
        assert not {*wishes, "config"} & set(found), resource.kind
    own = {key for annotations in wishes.values() for key in annotations}
    editor = await host.served.client("editor")
    for path in ("/apis/apps/v1/namespaces/default/deployments", f"{OURS}/namespaces/default/federatedrollouts"):
        for item in (await editor.get(path)).json()["items"]:
            annotations = item["metadata"].pop("annotations", {})
            told = [item.get("status"), {key: annotations[key] for key in annotations.keys() - own}]
            assert "west" not in str(told), item["metadata"]["name"]
    events = [message for _, message in await world.events()]
    about = [each for each in events if "west" in each]
    assert [each for each in about if "there is no FederatedCluster 'west'" not in each] == []


@pytest.mark.slow("a world and its API server")
async def test_no_answer_tells_whether_a_cluster_of_others_exists(host: Host) -> None:
    """Warnings and errors about a foreign cluster are those about a name that nothing has."""
    await host.world.create(PROJECTS, a_project("east"))
    await host.served.grant("editor", rule("create", "uniteddeployments", UNITED_DEPLOYMENTS.group))
    editor = await host.served.client("editor")

    async def said(resource: Resource, obj: Object, cluster: str) -> str:
        text = orjson.dumps(obj).decode().replace("CLUSTER", cluster)
        answer = await editor.post(resource.path("default"), content=text, params={"dryRun": "All"})
        told = (answer.status_code, answer.headers.get_list("warning"), answer.json().get("message"))
        return str(told).replace(cluster, "CLUSTER")

    deployment = {"kind": "Deployment", "apiVersion": "apps/v1", **a_deployment("united", replicas=1)}
    template = {"deploymentTemplate": {"metadata": {"labels": {"app": "united"}}, "spec": deployment["spec"]}}
    del deployment["spec"]["replicas"]
    subset = {"name": "a", "targetCluster": {"name": "CLUSTER"}}
    united = {
        "apiVersion": UNITED_DEPLOYMENTS.api_version,
        "kind": "UnitedDeployment",
        "metadata": {"name": "united"},
        "spec": {
            "replicas": 1,
            "selector": deployment["spec"]["selector"],
            "template": template,
            "topology": {"subsets": [subset]},
        },
    }
    for resource, obj in (
        (PROPAGATION_POLICIES, a_policy({"CLUSTER": 1})),
        (OVERRIDE_POLICIES, an_override("CLUSTER", "/spec/replicas", 1)),
        (UNITED_DEPLOYMENTS, united),
    ):
        foreign, missing, own = [await said(resource, obj, cluster) for cluster in ("west", "none", "east")]
        assert foreign == missing
        assert own != missing, "the project's own cluster is known"


@pytest.mark.slow("a world with Kueue's definitions")
async def test_a_workload_of_a_project_gets_and_names_no_cluster_of_others() -> None:
    """By room, by a forged nomination, with no worker of the project, and by the reasons why there is none."""
    async with a_world(members=tuple(MEMBERS), nodes=MEMBERS) as world:
        await world.create(PROJECTS, a_project("small"))
        await with_kueue(world, quota="10")
        await submit(world, a_workload("wide", pods=40))
        await submit(world, a_workload("forged", pods=40), nominatedClusterNames=["huge"])
        await submit(world, a_workload("fits", pods=4))
        await world.until_equal(lambda: nominated(world, "fits"), ["small"])

        async def are_told() -> bool:
            return (await events(world)).count("small: its queue has") == 2

        await world.until(are_told)
        await world.settle()
        assert not await nominated(world, "wide")
        assert not await nominated(world, "forged")
        about = [message for _, message in await world.events() if "queue has" in message or "pods" in message]
        assert "huge" not in str(about)
        assert "large:" not in str(about)

        # The project gets a cluster that is no worker, then the cluster with the most room.
        await world.merge(PROJECTS, "shop", {"spec": {"clusters": {"names": ["other"]}}}, namespace="")
        await submit(world, a_workload("nowhere", pods=4))

        async def is_told() -> bool:
            return "no cluster of the MultiKueueConfig is in the namespace's project" in await events(world)

        await world.until(is_told)
        assert not await nominated(world, "nowhere")
        await world.merge(PROJECTS, "shop", {"spec": {"clusters": {"names": ["huge"]}}}, namespace="")
        await world.until_equal(lambda: nominated(world, "nowhere"), ["huge"])


def test_the_cost_of_projects_grows_with_their_number() -> None:
    """Every write of a policy and every page reads them all."""
    projects = [
        a_project("east", name=f"p-{one}", namespaces=tuple(f"n-{one}-{two}" for two in range(100)))
        for one in range(1000)
    ]
    index, taken_s = cpu_s(lambda: ProjectIndex(projects), 0.4)
    assert taken_s < 0.4, "compared with each other, they take a second"
    found = index.of("n-7-7")
    assert found is not None
    assert found.name == "p-7"


CANARY = "zanzibar"
"""The name of a cluster outside of the project. It is in no text that a member of the project may read."""


STATES = ("east", "unavailable clusters", "no node", "drain", "waits in JobQueue", "wave elsewhere has no cluster")
"""What the texts of all states have."""

NAMESPACES_READ = ("shop", "default")
ABOUT = "/federation/v1"


async def readable(world: World, alice: httpx.AsyncClient, page: httpx.AsyncClient) -> AsyncIterator[tuple[str, str]]:
    """Yield all that a member of the project can read, each with its title.

    Objects of all kinds, Events, status and lists; JSON below `/federation/v1`, plans of writes and refusals among it;
    and the pages of the web UI that the links lead to.
    """
    names_of_objects: list[tuple[str, str]] = []
    for kind in kinds():
        if kind.subresource:
            continue
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        for namespace in NAMESPACES_READ if kind.is_namespaced else ("",):
            path = f"{root}/namespaces/{namespace}/{kind.plural}" if namespace else f"{root}/{kind.plural}"
            for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
                answer = await alice.get(path, headers={"accept": accept})
                yield f"{answer.status_code} {path}", f"{answer.headers} {answer.text}"
            if answer.status_code == 200 and kind.plural == "deployments":
                names_of_objects += [(namespace, row["object"]["metadata"]["name"]) for row in answer.json()["rows"]]
    about = "kind=FederatedCluster&group=core.kubeadmiral.io&name="
    paths = ["objects", "decisions", "capacity", "history", "queuehistory", "replay/records", f"decisions?{about}east"]
    for namespace in NAMESPACES_READ:
        paths += [f"{each}?namespace={namespace}" for each in ("objects", "decisions", "clusters", "replay/records")]
    paths += ["policyobjects?kind=ClusterPropagationPolicy&name=all", "topology?namespace=shop"]
    for namespace, name in names_of_objects:
        which = f"group=apps&kind=Deployment&namespace={namespace}&name={name}"
        paths += [f"{each}?{which}" for each in ("decisions", "delivery", "manifests")]
        paths += [
            f"{each}?{which}&cluster={cluster}"
            for each in ("differences", "pods", "memberobjects")
            for cluster in ("east", "none")
        ]
    public = ("/readyz?verbose", "/livez?verbose", "/version", "/api/v1", f"{OURS}", "/openapi/v2", "/metrics")
    for path in (*(f"{ABOUT}/{path}" for path in paths), *public):
        answer = await alice.get(path)
        yield f"{answer.status_code} {path}", f"{answer.headers} {answer.text}"
    taint = {"taints": [{"key": "a", "effect": "NoExecute"}]}
    cluster = {"apiVersion": CORE, "kind": "FederatedCluster", "metadata": {"name": "east"}, "spec": taint}
    policy = a_policy({"*": 1}, name="own")
    policy["metadata"]["namespace"] = "shop"
    document = {"apiVersion": CORE, "kind": "PropagationPolicy", **policy}
    for wanted in (
        {"replicas": ["deployment/web=9"], "explain": True},
        {"deletions": ["deployment/web"], "basis": True},
        {"documents": [{"manifest": document}], "explain": True},
        {"documents": [{"manifest": cluster}]},
    ):
        answer = await alice.post(f"{ABOUT}/plan", json={"namespace": "shop", **wanted})
        yield f"{answer.status_code} {ABOUT}/plan of {next(iter(wanted))}", answer.text
    for name in ("SelfSubjectRulesReview", "SelfSubjectAccessReview"):
        spec = {"namespace": "shop", "resourceAttributes": {"verb": "get", "resource": "pods"}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": name, "spec": spec}
        answer = await alice.post(f"/apis/authorization.k8s.io/v1/{name.lower()}s", json=review)
        yield f"{answer.status_code} {name}", answer.text
    frontier = Frontier(of_a_form_max=2)
    for link in frontier:
        answer = await page.get(link)
        yield f"{answer.status_code} {link}", answer.text
        frontier.add(answer.text)
    for action, form in (("scale", {"replicas": "9"}), ("move", {"clusters": "east"}), ("delete", {})):
        answer = await submit_form(page, action, "apps/v1/deployments/shop/web", **form)
        yield f"{answer.status_code} the plan of {action} on a page", answer.text


@pytest.mark.slow("a world, its API server and its web UI in all states of a cluster")
async def test_no_text_that_a_member_of_a_project_reads_names_a_cluster_of_others(tmp_path: Path) -> None:
    """A foreign cluster is drained, lost, named by policies of administrators, and joins again.

    The project has the namespace `default`, where Events about clusters lie.
    """
    names_of_members = ("east", "north", CANARY)
    async with a_world(members=names_of_members, is_judged=False) as world, served(world, tmp_path) as (parts, root):
        members = [{"role": "admin", "subjects": [ALICE]}]
        project = a_project("east", "north", namespaces=NAMESPACES_READ, members=members)
        assert (await root.post(f"{OURS}/projects", json=project)).status_code == 201
        peer = Peer("alice", (AUTHENTICATED,))
        alice, page = connect(parts.app, peer), logged_in(parts, Credentials(peer=peer), **OWN)

        async def is_member() -> bool:
            paths = [f"/api/v1/namespaces/{each}/events" for each in NAMESPACES_READ]
            paths.append(f"{OURS}/federatedclusters")
            return {(await alice.get(path)).status_code for path in paths} == {200}

        await world.until(is_member)
        watching = asyncio.ensure_future(
            alice.get("/api/v1/namespaces/default/events?watch=1&resourceVersion=0&timeoutSeconds=500")
        )
        await plant(world)
        leaks: dict[str, str] = {}
        read: dict[str, set[str]] = {}
        count = 0

        async def look(state: str) -> None:
            nonlocal count
            await world.pass_time(60)
            async for title, text in readable(world, alice, page):
                count += title.startswith("200")
                for each in STATES:
                    if each in text:
                        read.setdefault(each, set()).add(title)
                if CANARY in text:
                    at = text.index(CANARY)
                    leaks[f"{title} while it {state}"] = text[max(0, at - 150) : at + 100]

        await look("is ready")
        taint = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": to_rfc3339(world.clock.now())}
        await world.merge(FEDERATED_CLUSTERS, CANARY, {"spec": {"taints": [taint]}}, namespace="")
        image = {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
        for each in ("web", "held"):
            await world.merge(DEPLOYMENTS, each, image, namespace="shop")
        await look("is drained")
        await plant_holds(world)
        spec = {"placement": [{"cluster": name, "preferences": {"weight": 2}} for name in names_of_members]}
        await world.merge(CLUSTER_PROPAGATION_POLICIES, "all", {"spec": spec}, namespace="")
        await look("is in a changed policy")
        await world.lose(CANARY)
        await world.pass_time(400)
        await look("is lost")
        await world.bring_back(CANARY)
        await look("is back")
        events = (await watching).text
        await alice.aclose()
        await page.aclose()
        if CANARY in events:
            leaks["a watch of Events"] = events
        assert leaks == {}
        assert read.keys() == set(STATES), "texts of all states were read"
        assert CANARY in (await root.get("/api/v1/namespaces/default/events")).text, "an administrator reads of it"
        assert count > 400, "most requests were answered"


async def plant(world: World) -> None:
    """Name the foreign cluster in policies of administrators, and create workloads that wait for all reasons."""
    clusters = [CANARY, "east", "north"]
    waves = [{"name": "first", "clusters": [CANARY, "east"], "timeoutSeconds": 3600}]
    policy = a_policy(dict.fromkeys(clusters, 1), rollout={"waves": waves})
    policy["spec"]["changeRollout"] = {"waves": [{"name": "few", "objects": 1}]}
    policy |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "all"}}
    await world.create(CLUSTER_PROPAGATION_POLICIES, policy)
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "held"}]
    rollout = {"waves": [{"name": "elsewhere", "clusters": [CANARY]}]}
    policy = a_policy({"east": 1, "north": 1}, resourceSelectors=selectors, rollout=rollout, priority=1)
    policy |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "held"}}
    await world.create(CLUSTER_PROPAGATION_POLICIES, policy)
    override = an_override(CANARY, "/spec/none/such", 1, name="all")
    override |= {"kind": "ClusterOverridePolicy", "metadata": {"name": "all"}}
    await world.create(CLUSTER_OVERRIDE_POLICIES, override)
    budget = {"metadata": {"name": "all"}, "spec": {"maxUnavailable": 1}}
    kind = {"apiVersion": CLUSTER_DISRUPTION_BUDGETS.api_version, "kind": "ClusterDisruptionBudget"}
    await world.create(CLUSTER_DISRUPTION_BUDGETS, {**kind, **budget})
    for name, cpu in (("web", "100m"), ("held", "100m"), ("huge", "10000"), ("lost", "100m")):
        deployment = a_deployment(name, replicas=2)
        deployment["metadata"]["namespace"] = "shop"
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": cpu}}
        if name == "lost":
            deployment["metadata"]["annotations"] = {names.CLUSTER_SELECTOR: '{"no": "cluster"}'}
        await world.create(DEPLOYMENTS, deployment)
    await plant_other_kinds(world)
    await world.settle()


async def plant_other_kinds(world: World) -> None:
    """Create objects of other kinds in `default`, and policies and queues of administrators for them."""
    selectors = [
        {"apiVersion": resource.api_version, "kind": resource.kind}
        for resource in (STATEFUL_SETS, JOBS, SERVICES, CONFIGMAPS, V1ALPHA1, UNITED_DEPLOYMENTS)
    ]
    policy = a_policy({CANARY: 1, "east": 1, "north": 1}, resourceSelectors=selectors)
    policy["spec"]["failover"] = {"mode": "Never"}
    policy |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "others"}}
    await world.create(CLUSTER_PROPAGATION_POLICIES, policy)
    await world.create(CAPACITY_FLAVORS, a_flavor(clusterSelector={}))
    await world.create(CLUSTER_JOB_QUEUES, a_cluster_queue(cores="4"))
    await world.create(JOB_QUEUES, a_queue())
    for name, pods in (("fits", 1), ("waits", 40)):
        await world.create(JOBS, a_queued_job(name, pods))
    await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="20"))
    await world.create(STATEFUL_SETS, a_stateful_set("db", has_claims=True))
    united = a_united(a_subset("a"), a_subset("b"), replicas=2)
    del united["metadata"]["labels"]
    await world.create(V1ALPHA1, united)
    cron = a_cron({"name": "up", "schedule": "*/5 * * * *", "targetReplicas": 3}, name="web")
    await world.create(CRON_AUTOSCALERS, cron)
    federated_settings = federated("FederatedConfigMap", "settings", placement={"clusterSelector": {}})
    await world.create(FEDERATED_KINDS["FederatedConfigMap"].resource, federated_settings)


async def plant_holds(world: World) -> None:
    """Let administrators freeze and suspend the foreign cluster."""
    suspension = a_suspension(CLUSTER_DELIVERY_SUSPENSIONS, clusters=[CANARY])
    await world.create(CLUSTER_DELIVERY_SUSPENSIONS, suspension)
    window = {"start": to_rfc3339(world.clock.now()), "end": "2099-01-01T00:00:00Z"}
    freeze = {"reason": "a sale", "windows": [window], "clusters": [CANARY]}
    kind = {"apiVersion": CHANGE_FREEZES.api_version, "kind": "ChangeFreeze", "metadata": {"name": "sale"}}
    await world.create(CHANGE_FREEZES, {**kind, "spec": freeze})
