"""The graph of an application."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.api.shippedcomponents import shipped_components
from federation.apimachinery.resources import Resource
from federation.planning.applications.graph import Application, applications, owners_of, shared_parts
from federation.planning.followers.references import Identity

TYPES = {(type_.resource.group, type_.resource.kind): type_ for type_ in map(from_config, default_type_configs())}


def find_type(group: str, kind: str) -> FederatedType | None:
    return TYPES.get((group, kind))


def an_object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def a_workload(name: str, pod: Mapping[str, Any] | None = None, **annotations: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": [{"name": "c"}], **(pod or {})}}
    return an_object("apps/v1", "Deployment", name, metadata={"annotations": annotations}, spec={"template": template})


def a_service(name: str, selected: str = "", **metadata: Any) -> dict[str, Any]:
    return an_object("v1", "Service", name, metadata=metadata, spec={"selector": {"a": selected}} if selected else {})


def an_ingress(name: str, *services: str, tls: str = "") -> dict[str, Any]:
    paths = [{"backend": {"service": {"name": each}}} for each in services]
    spec = {"rules": [{"http": {"paths": paths}}], "tls": [{"secretName": tls}] if tls else []}
    return an_object("networking.k8s.io/v1", "Ingress", name, spec=spec)


def the(found: list[Application], name: str) -> Application:
    return next(each for each in found if each.identity.name == name)


def shown(application: Application) -> dict[str, str]:
    return {str(part.identity): f"{part.relation} {part.to}" for part in application.parts.values()}


def test_an_application_is_what_a_workload_needs_and_what_is_tied_to_it() -> None:
    certificate = an_object("cert-manager.io/v1", "Certificate", "tls", spec={"secretName": "tls"})
    found = applications(
        [
            a_workload("web", {"serviceAccountName": "runner"}),
            an_object("v1", "ServiceAccount", "runner", imagePullSecrets=[{"name": "pull"}]),
            a_service("web", "web", labels={"monitored": "yes"}),
            a_service("api", "api"),
            an_ingress("web", "web", tls="tls"),
            certificate,
            an_object("v1", "Secret", "tls"),
            an_object("policy/v1", "PodDisruptionBudget", "web", spec={"selector": {"matchLabels": {"a": "web"}}}),
            an_object("policy/v1", "PodDisruptionBudget", "api", spec={"selector": {"matchLabels": {"a": "api"}}}),
            an_object("monitoring.coreos.com/v1", "ServiceMonitor", "m", spec={"selector": {"matchLabels": {"monitored": "yes"}}}),
            an_object("monitoring.coreos.com/v1", "ServiceMonitor", "n", spec={"selector": {"matchLabels": {"monitored": "no"}}}),
            an_object("autoscaling/v2", "HorizontalPodAutoscaler", "web", spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}),
            an_object("autoscaling/v2", "HorizontalPodAutoscaler", "db", spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}}),
        ],
        find_type,
    )  # fmt: skip
    assert shown(the(found, "web")) == {
        "serviceaccount/runner": "is needed by deployment/web",
        "secret/pull": "is needed by serviceaccount/runner",
        "service/web": "exposes deployment/web",
        "ingress/web": "exposes service/web",
        "secret/tls": "is needed by ingress/web",
        "certificate/tls": "provides secret/tls",
        "poddisruptionbudget/web": "protects deployment/web",
        "servicemonitor/m": "monitors service/web",
        "horizontalpodautoscaler/web": "scales deployment/web",
    }
    assert the(found, "web").parts[Identity("", "Secret", "shop", "pull")].obj is None


def test_what_two_applications_share_is_a_part_of_both() -> None:
    found = applications(
        [
            a_workload("web"),
            a_workload("api"),
            a_service("web", "web"),
            a_service("api", "api"),
            an_ingress("both", "web", "api"),
            an_object("networking.k8s.io/v1", "NetworkPolicy", "all", spec={"podSelector": {}}),
        ],
        find_type,
    )
    web = the(found, "web")
    assert set(shown(web)) == {"service/web", "ingress/both", "networkpolicy/all"}
    shared = shared_parts(web, owners_of(found))
    assert {str(part): list(map(str, others)) for part, others in shared.items()} == {
        "ingress/both": ["deployment/api"],
        "networkpolicy/all": ["deployment/api"],
    }


def test_listed_objects_are_parts_and_a_malformed_list_is_ignored() -> None:
    listed = orjson.dumps([{"kind": "Service", "name": "x"}, {"kind": "ServiceAccount", "name": "y"}]).decode()
    account = {"serviceAccountName": "y"}
    [found] = applications([a_workload("web", account, **{names.FOLLOWERS: listed})], find_type)
    needed = "is needed by deployment/web"
    assert shown(found) == {"serviceaccount/y": needed, "service/x": "is listed by deployment/web"}
    [found] = applications([a_workload("web", account, **{names.FOLLOWERS: listed}), a_service("x", "web")], find_type)
    assert shown(found)["service/x"] == "exposes deployment/web", "its own relation says more"
    [found] = applications([a_workload("web", **{names.FOLLOWERS: "["})], find_type)
    assert shown(found) == {}


def test_gateways_of_the_namespace_are_needed_by_their_routes() -> None:
    def a_route(**parent: Any) -> dict[str, Any]:
        spec = {"parentRefs": [parent, 7], "rules": [{"backendRefs": [{"name": "web"}]}]}
        return an_object("gateway.networking.k8s.io/v1", "HTTPRoute", "r", spec=spec)

    for parent, expected in (
        ({"name": "g"}, {"gateway/g": "is needed by httproute/r"}),
        ({"name": "g", "namespace": "shop"}, {"gateway/g": "is needed by httproute/r"}),
        ({"name": "g", "namespace": "infra"}, {}),
        ({"name": 1}, {}),
    ):
        [found] = applications([a_workload("web"), a_service("web", "web"), a_route(**parent)], find_type)
        assert shown(found) == {
            "service/web": "exposes deployment/web",
            "httproute/r": "exposes service/web",
            **expected,
        }
    route = a_route(name="g")
    route["spec"]["parentRefs"] = "g"
    [found] = applications([a_workload("web"), a_service("web", "web"), route], find_type)
    assert "gateway/g" not in shown(found)


def test_pods_without_a_controller_are_named_and_what_controllers_make_is_not() -> None:
    def a_pod(name: str, label: str, **metadata: Any) -> dict[str, Any]:
        return an_object("v1", "Pod", name, metadata={"labels": {"a": label}, **metadata})

    owned = {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]}
    a_slice = an_object("discovery.k8s.io/v1", "EndpointSlice", "web-1")
    a_slice["metadata"]["labels"] = {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    by_hand = an_object("discovery.k8s.io/v1", "EndpointSlice", "hand")
    by_hand["metadata"]["labels"] = {"kubernetes.io/service-name": "web"}
    [found] = applications(
        [
            a_workload("web"),
            a_service("web", "web"),
            an_object("networking.k8s.io/v1", "NetworkPolicy", "all", spec={"podSelector": {}}),
            a_pod("debug", "web"),
            a_pod("other", "api"),
            a_pod("web-1", "web", **owned),
            a_slice,
            by_hand,
        ],
        find_type,
    )
    assert found.bare_pods == ["debug"]
    assert shown(found)["endpointslice/hand"] == "exposes service/web"
    assert "endpointslice/web-1" not in shown(found)


def test_a_workload_whose_pods_have_no_known_labels_is_selected_by_what_selects_all() -> None:
    policy = an_object("networking.k8s.io/v1", "NetworkPolicy", "all", spec={"podSelector": {}})
    workload = a_workload("web")
    del workload["spec"]["template"]["metadata"]
    [found] = applications([workload, policy, a_service("web", "web")], find_type)
    assert shown(found) == {"networkpolicy/all": "protects deployment/web"}


def test_the_pods_of_a_kind_with_components_have_no_labels() -> None:
    ray = FederatedType("rayclusters.ray.io", Resource("ray.io", "v1", "RayCluster", "rayclusters"), ())
    ray = replace(ray, components=shipped_components("ray.io", "RayCluster"))
    cluster = an_object("ray.io/v1", "RayCluster", "ray", spec={"headGroupSpec": {"template": {"spec": {}}}})
    policy = an_object("networking.k8s.io/v1", "NetworkPolicy", "all", spec={"podSelector": {}})
    [found] = applications([cluster, policy], lambda _, kind: ray if kind == "RayCluster" else None)
    assert shown(found) == {"networkpolicy/all": "protects raycluster/ray"}
