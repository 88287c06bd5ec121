"""Common Kubernetes clients, unchanged, against a real HTTPS server.

kr8s, lightkube, a kopf operator, Helm, and the official client with its watch, asyncio twin and leader election.
"""

import os
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.apiserver import Parts
from tests.support.leftsockets import collect_left_sockets
from tests.support.rest import Api, eventually

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("clients"),
    # Foreign clients leave sockets and temporary certificate files to the garbage collector, and use what is deprecated.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),  # kr8s knows versions up to its own release
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget", "singular": "gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def a_deployment(name: str = "web") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
        },
    }


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    yield
    collect_left_sockets()


@pytest.fixture(scope="session")
def kubeconfig(parts: Parts) -> Path:
    return parts.kubeconfig


@pytest.fixture
def api(administrator: Api) -> Iterator[Api]:
    """Our own view of the server, in a new namespace."""
    api = administrator.within(f"clients-{uuid.uuid4().hex[:8]}")
    api.create("namespaces", {"metadata": {"name": api.namespace}})
    yield api
    api.delete("namespaces", api.namespace)


async def test_kr8s_works_unchanged(api: Api, kubeconfig: Path) -> None:
    import kr8s.asyncio
    from kr8s.asyncio.objects import ConfigMap, Deployment

    client = await kr8s.asyncio.api(kubeconfig=str(kubeconfig), namespace=api.namespace)
    body = {"metadata": {"name": "cm", "namespace": api.namespace}, "data": {"a": "b"}}
    config_map = await ConfigMap(body, api=client)
    await config_map.create()
    await config_map.patch({"data": {"c": "d"}})
    await config_map.label({"tier": "test"})
    assert [found.name async for found in client.get("configmaps", label_selector="tier=test")] == ["cm"]
    assert config_map.data == {"a": "b", "c": "d"}
    manifest = a_deployment()
    manifest["metadata"]["namespace"] = api.namespace
    deployment = await Deployment(manifest, api=client)
    await deployment.create()
    await deployment.patch({"spec": {"replicas": 3}}, subresource="scale")
    assert api.get("deployments", "web")["spec"]["replicas"] == 3
    async for event, found in client.watch("configmaps", label_selector="tier=test"):
        assert (event, found.name) == ("ADDED", "cm")
        break
    await config_map.delete()
    await config_map.wait("delete", timeout=90)


def test_lightkube_works_unchanged(api: Api, kubeconfig: Path) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.generic_resource import load_in_cluster_generic_resources
    from lightkube.models.autoscaling_v1 import ScaleSpec
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apps_v1 import Deployment
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    client = Client(KubeConfig.from_file(str(kubeconfig)), namespace=api.namespace, field_manager="lightkube")
    created = client.create(ConfigMap(metadata=ObjectMeta(name="cm", labels={"a": "b"}), data={"k": "v"}))
    assert created.metadata is not None
    event, seen = next(iter(client.watch(ConfigMap, labels={"a": "b"})))
    assert (event, seen.metadata.name) == ("ADDED", "cm")
    patched = client.patch(ConfigMap, "cm", {"data": {"k": "w"}}, patch_type=PatchType.MERGE)
    assert patched.data == {"k": "w"}
    applied = client.apply(Deployment.from_dict(a_deployment()))
    assert applied.spec.replicas == 1
    client.replace(Deployment.Scale(metadata=ObjectMeta(name="web", namespace=api.namespace), spec=ScaleSpec(2)))
    assert client.get(Deployment, "web").spec.replicas == 2
    assert [found.metadata.name for found in client.list(ConfigMap, labels={"a": "b"}, chunk_size=1)] == ["cm"]
    load_in_cluster_generic_resources(client)
    client.delete(ConfigMap, "cm")
    api.wait_gone("configmaps", "cm")
    with pytest.raises(ApiError) as caught:
        client.get(ConfigMap, "cm")
    assert caught.value.status.code == 404


OPERATOR = """
import kopf

@kopf.on.create("example.com", "v1", "gadgets")
def created(spec, name, patch, **_):
    patch.status["phase"] = f"made {name} of size {spec['size']}"

@kopf.on.update("example.com", "v1", "gadgets", field="spec.size")
def updated(old, new, patch, **_):
    patch.status["phase"] = f"from {old} to {new}"

@kopf.on.delete("example.com", "v1", "gadgets")
def deleted(**_):
    pass
"""


def test_a_kopf_operator_manages_finalizer_and_status(api: Api, kubeconfig: Path, tmp_path: Path) -> None:
    api.create("customresourcedefinitions", GADGETS)
    gadgets = "example.com/v1/gadgets"
    (tmp_path / "gadget_operator.py").write_text(OPERATOR)
    log = (tmp_path / "log").open("w")
    operator = subprocess.Popen(
        [sys.executable, "-m", "kopf", "run", "--namespace", api.namespace, str(tmp_path / "gadget_operator.py")],
        env={**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)},
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
    )
    try:
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
        api.create(gadgets, gadget)

        def says(phase: str) -> bool:
            assert operator.poll() is None, (tmp_path / "log").read_text()
            return api.get(gadgets, "g").get("status", {}).get("phase") == phase

        eventually(lambda: says("made g of size 1"))
        assert api.get(gadgets, "g")["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        api.patch(gadgets, "g", {"spec": {"size": 2}})
        eventually(lambda: says("from 1 to 2"))
        api.delete(gadgets, "g")
        api.wait_gone(gadgets, "g")
    finally:
        operator.kill()
        operator.wait(60)
        log.close()
        api.delete("customresourcedefinitions", "gadgets.example.com")


def test_the_official_client_writes_watches_and_resumes(api: Api, kubeconfig: Path) -> None:
    from kubernetes import client, config, watch

    core = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
    since = core.list_namespaced_config_map(api.namespace).metadata.resource_version
    for name in ("a", "b"):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data={"a": "b"})
        assert core.create_namespaced_config_map(api.namespace, body).metadata.uid
    watcher, seen = watch.Watch(), []
    options = {"resource_version": since, "field_selector": "metadata.name!=kube-root-ca.crt", "timeout_seconds": 60}
    for event in watcher.stream(core.list_namespaced_config_map, api.namespace, **options):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            watcher.stop()
    assert seen == [("ADDED", "a"), ("ADDED", "b")]
    core.patch_namespaced_config_map("a", api.namespace, {"data": {"c": "d"}})
    assert core.read_namespaced_config_map("a", api.namespace).data == {"a": "b", "c": "d"}
    core.delete_namespaced_config_map("a", api.namespace)
    with pytest.raises(client.ApiException) as caught:
        core.read_namespaced_config_map("a", api.namespace)
    assert caught.value.status == 404


def test_the_official_dynamic_client_applies_and_reviews(api: Api, kubeconfig: Path) -> None:
    from kubernetes import client, config, dynamic

    connection = config.new_client_from_config(str(kubeconfig))
    deployments = dynamic.DynamicClient(connection).resources.get(api_version="apps/v1", kind="Deployment")
    for replicas in (1, 2):
        manifest = a_deployment()
        manifest["spec"]["replicas"] = replicas
        applied = deployments.server_side_apply(
            body=manifest, name="web", namespace=api.namespace, field_manager="dynamic"
        )
        assert applied.spec.replicas == replicas
    assert deployments.get(name="web", namespace=api.namespace).metadata.managedFields[0].manager == "dynamic"
    deployments.delete(name="web", namespace=api.namespace)
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert client.AuthorizationV1Api(connection).create_self_subject_access_review(review).status.allowed


async def test_the_official_asyncio_client_works_unchanged(api: Api, kubeconfig: Path) -> None:
    from kubernetes.aio import client, config, watch

    async with await config.new_client_from_config(str(kubeconfig)) as connection:
        core = client.CoreV1Api(connection)
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="cm", labels={"a": "b"}), data={"k": "v"})
        await core.create_namespaced_config_map(api.namespace, body)
        watcher, seen = watch.Watch(), []
        options = {"label_selector": "a=b", "timeout_seconds": 60}
        async for event in watcher.stream(core.list_namespaced_config_map, api.namespace, **options):
            seen.append((event["type"], event["object"].metadata.name))
            watcher.stop()
        assert seen == [("ADDED", "cm")]
        listed = await core.list_namespaced_config_map(api.namespace, label_selector="a=b")
        assert [item.metadata.name for item in listed.items] == ["cm"]


def test_the_official_leader_election_hands_over(api: Api, kubeconfig: Path, tmp_path: Path) -> None:
    """Two candidates as processes; when the leader is killed the other one takes the lease."""
    program = textwrap.dedent("""
        import sys
        from kubernetes import config
        from kubernetes.leaderelection import electionconfig, leaderelection
        from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

        config.load_kube_config(sys.argv[1])
        lock = LeaseLock("leader", sys.argv[2], sys.argv[3])
        leaderelection.LeaderElection(electionconfig.Config(
            lock, lease_duration=3, renew_deadline=2, retry_period=1,
            onstarted_leading=lambda: None, onstopped_leading=lambda: None)).run()
    """)
    (tmp_path / "candidate.py").write_text(program)

    def candidate(name: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(tmp_path / "candidate.py"), str(kubeconfig), api.namespace, name]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def leads(name: str) -> bool:
        return api.exists("leases", "leader") and name in str(api.get("leases", "leader"))

    first = candidate("first")
    try:
        eventually(lambda: leads("first"))
        second = candidate("second")
        try:
            first.kill()
            eventually(lambda: leads("second"))
        finally:
            second.kill()
            second.wait(60)
    finally:
        first.kill()
        first.wait(60)


def write_chart(folder: Path, version: str, color: str) -> Path:
    files = {
        "Chart.yaml": {"apiVersion": "v2", "name": "shop", "version": version},
        "values.yaml": {"color": color},
        "crds/bolts.yaml": {
            **GADGETS,
            "metadata": {"name": "bolts.example.org"},
            "spec": {
                **GADGETS["spec"],
                "group": "example.org",
                "names": {"plural": "bolts", "kind": "Bolt", "singular": "bolt"},
            },
        },
    }
    texts = {name: yaml.safe_dump(content) for name, content in files.items()}
    texts["templates/all.yaml"] = textwrap.dedent("""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: {{ .Release.Name }}-settings}
        data: {color: {{ .Values.color }}}
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: {{ .Release.Name }}}
        spec: {selector: {app: shop}, ports: [{port: 80}]}
        ---
        apiVersion: example.org/v1
        kind: Bolt
        metadata: {name: {{ .Release.Name }}}
        spec: {size: 3}
    """)
    texts["templates/hook.yaml"] = textwrap.dedent("""
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: {{ .Release.Name }}-hook-{{ .Release.Revision }}
          annotations: {"helm.sh/hook": "post-install,post-upgrade"}
        data: {color: {{ .Values.color }}}
    """)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow("runs Helm several times")
def test_helm_installs_upgrades_and_uninstalls(api: Api, kubeconfig: Path, tmp_path: Path) -> None:
    """The real Helm library: install, upgrade, rollback, list and uninstall of a chart with a hook and a CRD."""
    import helm_python as helm

    first = write_chart(tmp_path / "one", "1.0.0", "red")
    second = write_chart(tmp_path / "two", "1.1.0", "blue")

    def color() -> str:
        return str(api.get("configmaps", "demo-settings")["data"]["color"])

    with helm.Config(kubeconfig_path=str(kubeconfig), namespace=api.namespace) as helm_client:
        installed = helm_client.install(str(first), "demo", timeout=60)
        assert (installed["revision"], installed["status"]) == (1, "deployed")
        assert color() == "red"
        assert api.get("example.org/v1/bolts", "demo")["spec"] == {"size": 3}
        assert api.exists("configmaps", "demo-hook-1")
        assert helm_client.upgrade(str(second), "demo", timeout=60)["revision"] == 2
        assert color() == "blue"
        assert api.exists("configmaps", "demo-hook-2")
        helm_client.rollback("demo", version=1, timeout=60)
        assert color() == "red"
        assert [(item["name"], item["revision"]) for item in helm_client.list()] == [("demo", 3)]
        assert len(helm_client.history("demo")) == 3
        helm_client.uninstall("demo", timeout=60)
        assert helm_client.list() == []
    api.wait_gone("services", "demo")
    assert api.exists("customresourcedefinitions", "bolts.example.org")
    api.delete("customresourcedefinitions", "bolts.example.org")
