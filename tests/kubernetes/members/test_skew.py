"""Members of three Kubernetes versions, 1.32, 1.34 and 1.36, in one federation. `make kubernetes ALL=1` builds them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.kubernetes.build import E2E, missing_binaries
from tests.kubernetes.cluster import real_cluster
from tests.kubernetes.members.federation import (
    REGIONS,
    RealFederation,
    apply,
    in_parallel,
    real_federation,
    versions,
)
from tests.support.federation import eventually
from tests.support.vectors import ROOT

pytestmark = pytest.mark.slow
MINORS = ("v1.32", "v1.34", "")
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com", "labels": {"kubeadmiral.io/cluster-propagation-policy-name": "all"}},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
ALL_CLUSTERS = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "ClusterPropagationPolicy",
    "metadata": {"name": "all"},
    "spec": {"schedulingMode": "Duplicate"},
}


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealFederation]:
    """A federation of three versions, with the quickstart applied."""
    for minor in MINORS:
        if missing := [name for name in missing_binaries(minor) if name != E2E]:
            pytest.fail(f"{minor or 'v1.36'}: {', '.join(missing)} not built: run `make kubernetes ALL=1`")
    folder = tmp_path_factory.mktemp("skew")
    stacks = [ExitStack() for _ in MINORS]
    try:
        clusters = in_parallel(
            lambda at: stacks[at].enter_context(real_cluster(folder / f"cluster-{at + 1}", minor=MINORS[at])),
            range(len(MINORS)),
        )
        with real_federation(folder, dict(zip(REGIONS, clusters, strict=True))) as running:
            running.kubectl("apply", "-f", str(ROOT / "examples" / "quickstart"))
            running.kubectl("rollout", "status", "deploy/nginx", "--timeout=90s", timeout_s=100)
            yield running
    finally:
        in_parallel(ExitStack.close, stacks)


def test_every_version_runs_its_share_and_reports(fed: RealFederation) -> None:
    minors = [fed.member(name).json("version")["serverVersion"]["minor"] for name in fed.members]
    assert minors == ["32", "34", "36"]
    replicas = [fed.member(name).json("get", "deploy", "nginx")["status"]["readyReplicas"] for name in fed.members]
    assert replicas == [4, 2, 2]
    assert fed.kubectl.json("get", "deploy", "nginx")["status"]["readyReplicas"] == 8
    listed = fed.fedctl("clusters", "-o", "json")
    ready = [
        condition["status"]
        for cluster in json.loads(listed)
        for condition in cluster["status"]["conditions"]
        if condition["type"] == "Ready"
    ]
    assert ready == ["True"] * 3


def test_drift_is_repaired_and_then_nothing_is_written(fed: RealFederation) -> None:
    for name in fed.members:
        fed.member(name)("scale", "deploy/nginx", "--replicas=7")
    eventually(
        lambda: [fed.member(name).json("get", "deploy", "nginx")["spec"]["replicas"] for name in fed.members],
        lambda seen: seen == [4, 2, 2],
        what="the planned replicas",
    )
    fed.kubectl("rollout", "status", "deploy/nginx", "--timeout=90s", timeout_s=100)
    kinds = "services,configmaps"
    before = versions(fed, kinds)
    assert fed.stop() == 0
    again = fed.restarted()
    try:
        again.kubectl("rollout", "status", "deploy/nginx", "--timeout=90s", timeout_s=100)
        eventually(lambda: again.fedctl("clusters"), lambda seen: seen.count("Ready") >= 3, what="ready clusters")
        assert versions(again, kinds) == before, "a restart writes nothing, whatever defaults a version adds"
        apply(again.kubectl, ALL_CLUSTERS, WIDGETS)
        crd = ("get", "crd", "widgets.example.com", "--ignore-not-found")
        eventually(
            lambda: [bool(again.member(name)(*crd)) for name in again.members],
            all,
            what="the definition in every member",
        )
        again.kubectl("delete", "deploy", "nginx", timeout_s=90)
        for name in again.members:
            assert not again.member(name)("get", "deploy", "nginx", "--ignore-not-found")
    finally:
        again.close()
