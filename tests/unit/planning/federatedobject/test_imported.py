"""The source that is made of an object that runs in a member."""

from copy import deepcopy
from typing import Any

import orjson
import pytest
from tests.support.manifests import a_deployment

from federation.api import names
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.planning.federatedobject.imported import (
    adoption_annotations,
    import_problem,
    is_import_begun,
    is_made_by_cluster,
    namespace_source,
    to_source,
    without_defaults,
)

LABEL = (names.PROPAGATION_POLICY_LABEL, "import-east")
FILL = {info.resource.kind: info.strategy.default for info in builtin_kinds() if info.resource.version == "v1"}


def _live(obj: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return the object as a member's API server stores it."""
    live = deepcopy(obj)
    FILL[live["kind"]](live)
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 3, "managedFields": [{}], **metadata}
    return {**live, "status": {"replicas": 1}}


def test_a_deployment_becomes_what_its_author_wrote() -> None:
    written = a_deployment("web", replicas=1)
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "deployment.kubernetes.io/revision": "4",
        "kubeadmiral.io/adopted": "true",
        "federation.kubeadmiral.io/template-hash": "x",
        "team": "shop",
    }
    live = _live(written, annotations=annotations, finalizers=["a/b"], creationTimestamp="2026-01-01T00:00:00Z")
    source = without_defaults(to_source(live, "east", LABEL), FILL["Deployment"])
    assert source["spec"] == written["spec"]
    assert source["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": {"app": "web", names.PROPAGATION_POLICY_LABEL: "import-east"},
        "annotations": {
            "team": "shop",
            names.CONFLICT_RESOLUTION: "adopt",
            names.CLUSTERS_TO_ADOPT: '{"clusters":["east"]}',
        },
    }
    assert "status" not in source


def test_only_defaults_are_removed() -> None:
    written = a_deployment("web", replicas=1)
    written["spec"]["template"]["spec"] |= {"restartPolicy": "Always", "terminationGracePeriodSeconds": 5}
    written["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": "25%"}}
    source = without_defaults(to_source(_live(written), "east", LABEL), FILL["Deployment"])
    assert source["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 5
    assert "restartPolicy" not in source["spec"]["template"]["spec"]
    assert source["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": 3}}
    again = deepcopy(source)
    FILL["Deployment"](again)
    assert again["spec"] == _live(written)["spec"], "the host fills in the same again"


def test_a_huge_object_is_not_searched_for_defaults() -> None:
    source = {"kind": "Widget", "metadata": {"name": "w"}, "spec": {f"key-{number}": number for number in range(2001)}}

    def never(_: dict[str, Any]) -> None:
        raise AssertionError

    assert without_defaults(source, never) is source


@pytest.mark.parametrize(
    ("live", "kept"),
    [
        (
            {
                "kind": "Service",
                "spec": {
                    "clusterIP": "10.0.0.1",
                    "clusterIPs": ["10.0.0.1"],
                    "ipFamilies": ["IPv4"],
                    "healthCheckNodePort": 3,
                    "type": "NodePort",
                    "ports": [{"port": 80, "nodePort": 30001}],
                },
            },
            {"spec": {"type": "NodePort", "ports": [{"port": 80}]}},
        ),
        ({"kind": "Service", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}, None),
        ({"kind": "PersistentVolumeClaim", "spec": {"volumeName": "pv-1", "a": 1}}, {"spec": {"a": 1}}),
        ({"kind": "ServiceAccount", "secrets": [{"name": "token"}]}, {}),
        (
            {
                "kind": "Job",
                "spec": {
                    "selector": {"matchLabels": {"controller-uid": "u"}},
                    "template": {"metadata": {"labels": {"controller-uid": "u", "app": "a"}}},
                },
            },
            {"spec": {"template": {"metadata": {"labels": {"app": "a"}}}}},
        ),
        (
            {"kind": "Job", "spec": {"selector": {}, "template": {"spec": {"a": 1}}}},
            {"spec": {"template": {"spec": {"a": 1}}}},
        ),
        ({"kind": "Job", "spec": {"selector": {}, "template": "odd"}}, {"spec": {"template": "odd"}}),
        ({"kind": "Job", "spec": {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}}, None),
    ],
)
def test_what_the_member_allocated_stays_there(live: dict[str, Any], kept: dict[str, Any] | None) -> None:
    source = to_source({**live, "metadata": {"name": "a"}}, "east", LABEL)
    found = {key: value for key, value in source.items() if key not in ("kind", "metadata")}
    assert found == ({"spec": live["spec"]} if kept is None else kept)


@pytest.mark.parametrize(
    ("kind", "metadata", "words"),
    [
        (
            "Deployment",
            {"labels": {names.MANAGED_LABEL: "true"}, "annotations": {names.TEMPLATE_HASH: "1"}},
            "manages it already",
        ),
        ("Deployment", {"labels": {names.MANAGED_LABEL: "false"}}, "remove the label"),
        ("Deployment", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "being deleted"),
        (
            "ReplicaSet",
            {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "u", "controller": True}]},
            "it belongs to Deployment web; import that",
        ),
        ("Pod", {}, "are not imported"),
        ("Deployment", {}, ""),
    ],
)
def test_what_cannot_be_imported_is_named_with_a_remedy(kind: str, metadata: dict[str, Any], words: str) -> None:
    problem = import_problem({"kind": kind, "metadata": {"name": "a", **metadata}})
    assert words in problem
    assert bool(problem) is bool(words)


@pytest.mark.parametrize(
    ("kind", "name", "fields", "expected"),
    [
        ("ConfigMap", "kube-root-ca.crt", {}, True),
        ("ConfigMap", "default", {}, False),
        ("ServiceAccount", "default", {}, True),
        ("ServiceAccount", "runner", {}, False),
        ("Secret", "token", {"type": "kubernetes.io/service-account-token"}, True),
        ("Secret", "token", {"type": "Opaque"}, False),
        ("Endpoints", "web", {}, True),
        ("EndpointSlice", "by-hand", {}, False),
        ("Deployment", "web", {}, False),
    ],
)
def test_what_every_cluster_makes_is_not_imported(kind: str, name: str, fields: dict[str, Any], expected: bool) -> None:
    assert is_made_by_cluster({"kind": kind, "metadata": {"name": name}, **fields}) is expected


def test_a_namespace_keeps_what_its_author_wrote() -> None:
    labels = {"team": "shop", "kubernetes.io/metadata.name": "shop", names.MANAGED_LABEL: "true"}
    live = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "1", "labels": labels, "annotations": {"owner": "a"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    source = namespace_source(live, "east")
    annotations = source["metadata"].pop("annotations")
    assert source == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "shop"}}}
    assert annotations["owner"] == "a"
    assert orjson.loads(annotations[names.CLUSTERS_TO_ADOPT]) == {"clusters": ["east"]}


def test_clusters_to_adopt_are_added() -> None:
    present = {names.CLUSTERS_TO_ADOPT: '{"clusters":["west"],"regexp":"^eu-"}'}
    added = adoption_annotations(present, ["east"])
    assert orjson.loads(added[names.CLUSTERS_TO_ADOPT]) == {"clusters": ["east", "west"], "regexp": "^eu-"}
    assert orjson.loads(adoption_annotations({names.CLUSTERS_TO_ADOPT: "no"}, ["a"])[names.CLUSTERS_TO_ADOPT]) == {
        "clusters": ["a"]
    }


def test_defaults_of_an_object_that_lacks_others_are_removed_too() -> None:
    def fill(obj: dict[str, Any]) -> None:
        for key in ("first", "second"):
            obj["spec"].setdefault(key, 1)

    assert without_defaults({"spec": {"first": 1, "own": 3}}, fill) == {"spec": {"own": 3}}


def test_an_import_that_has_begun_is_known_by_what_it_wrote() -> None:
    source = to_source(_live(a_deployment("web", 2)), "east", LABEL)
    assert is_import_begun(source, "east")
    assert not is_import_begun(source, "west")
    assert not is_import_begun(a_deployment("web", 2), "east")


def test_slices_of_controllers_are_not_imported_and_those_written_by_hand_are_named() -> None:
    labels = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    assert is_made_by_cluster({"kind": "EndpointSlice", "metadata": {"name": "web-1", "labels": labels}})
    assert is_made_by_cluster(
        {"kind": "EndpointSlice", "metadata": {"name": "x", "labels": {names.MANAGED_LABEL: "true"}}}
    )
    problem = import_problem({"kind": "EndpointSlice", "metadata": {"name": "by-hand"}})
    assert problem.startswith("addresses that are written by hand")
