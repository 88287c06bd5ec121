"""ResourceQuota arithmetic: the usage of pods, the scopes, and the texts of refusals."""

from typing import Any

import pytest

from federation.apimachinery.quantity import parse
from federation.apiserver.semantics.quota.podusage import missing_resources, parse_usage, pod_usage
from federation.apiserver.semantics.quota.quota import bytes_prefix, find_refusal, parse_quota
from federation.apiserver.semantics.quota.usage import object_usage

Object = dict[str, Any]


def a_container(
    name: str = "main", requests: Object | None = None, limits: Object | None = None, **more: Any
) -> Object:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def a_pod(*containers: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


def a_quota(hard: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "q", "namespace": "a"}, "spec": {"hard": hard, **spec}}


def test_a_pod_uses_the_sum_of_its_containers_or_the_peak_of_its_initialization() -> None:
    init = a_container("init", {"cpu": "3", "memory": "1Gi"})
    sidecar = a_container("sidecar", {"cpu": "1"}, restartPolicy="Always")
    pod = a_pod(a_container("a", {"cpu": "1"}), a_container("b", {"memory": "2Gi"}), initContainers=[sidecar, init])
    usage = pod_usage(pod)
    assert usage["requests.cpu"] == usage["cpu"] == parse("4")  # the init container and the sidecar before it
    assert usage["memory"] == parse("2Gi")


def test_extended_resources_count_as_requests_only() -> None:
    usage = pod_usage(a_pod(a_container(requests={"example.com/gpu": "2"}, limits={"example.com/gpu": "2"})))
    assert usage["requests.example.com/gpu"] == parse("2")
    assert usage.keys() == {"pods", "count/pods", "requests.example.com/gpu"}


def test_overhead_adds_to_requests() -> None:
    assert pod_usage(a_pod(a_container(requests={"cpu": "1"}), overhead={"cpu": "250m"}))["cpu"] == parse("1250m")


def test_missing_resources_are_listed_with_their_containers() -> None:
    pod = a_pod(a_container("b"), a_container("a", {"cpu": "1"}))
    text = missing_resources(pod, {"requests.cpu", "limits.memory", "requests.storage"})
    assert text == "must specify limits.memory for: a,b; requests.cpu for: b"


@pytest.mark.parametrize(
    ("expression", "inside", "outside"),
    [
        ({"operator": "In", "values": ["high"]}, "high", ""),
        ({"operator": "NotIn", "values": ["high"]}, "", "high"),
        ({"operator": "Exists"}, "high", ""),
        ({"operator": "DoesNotExist"}, "", "high"),
    ],
    ids=["In", "NotIn", "Exists", "DoesNotExist"],
)
def test_a_scope_selector_selects_priority_classes(expression: Object, inside: str, outside: str) -> None:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", **expression}]}
    quota = parse_quota(a_quota({"pods": "1"}, scopeSelector=selector))
    pods = [a_pod(a_container(), priorityClassName=name) for name in (inside, outside)]
    assert [bool(quota.masked("pods", pod, pod_usage(pod))) for pod in pods] == [True, False]


def test_a_quota_with_a_scope_counts_only_pods() -> None:
    quota = parse_quota(a_quota({"count/secrets": "1"}, scopes=["BestEffort"]))
    secret = {"metadata": {"name": "s"}}
    assert quota.masked("secrets", secret, object_usage("secrets", secret)) == {}


def test_cross_namespace_affinity_is_a_scope() -> None:
    quota = parse_quota(a_quota({"pods": "1"}, scopes=["CrossNamespacePodAffinity"]))
    term = {"topologyKey": "zone", "namespaces": ["other"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [a_pod(a_container(), affinity=affinity), a_pod(a_container())]
    assert [bool(quota.masked("pods", pod, pod_usage(pod))) for pod in pods] == [True, False]


def test_a_refusal_names_only_the_exceeded_resources() -> None:
    quota = parse_quota(a_quota({"cpu": "2", "memory": "1Gi"}))
    text = find_refusal(
        quota, parse_usage({"cpu": "1", "memory": "1Gi"}), parse_usage({"cpu": "500m", "memory": "1Mi"})
    )
    assert text == "exceeded quota: q, requested: memory=1Mi, used: memory=1Gi, limited: memory=1Gi"


def test_limits_on_bytes_name_a_kind_or_all() -> None:
    names = ("bytes", "bytes/configmaps", "bytes/deployments.apps")
    assert [bytes_prefix(name) for name in names] == ["", "/core/configmaps/", "/apps/deployments/"]


def a_claim(name: str = "", **status: Any) -> Object:
    """Return a claim of a volume attributes class ("" for none)."""
    spec = {"resources": {"requests": {"storage": "1Gi"}}, **({"volumeAttributesClassName": name} if name else {})}
    return {"metadata": {"name": "c"}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("expression", "claim", "is_counted"),
    [
        ({"operator": "In", "values": ["gold"]}, a_claim("gold"), True),
        ({"operator": "In", "values": ["gold"]}, a_claim("silver"), False),
        ({"operator": "In", "values": ["gold"]}, a_claim("silver", currentVolumeAttributesClassName="gold"), True),
        (
            {"operator": "In", "values": ["gold"]},
            a_claim(modifyVolumeStatus={"targetVolumeAttributesClassName": "gold", "status": "Pending"}),
            True,
        ),
        ({"operator": "NotIn", "values": ["gold"]}, a_claim("gold"), False),
        ({"operator": "NotIn", "values": ["gold"]}, a_claim(), True),
        ({"operator": "Exists"}, a_claim("gold"), True),
        ({"operator": "Exists"}, a_claim(), False),
        ({"operator": "DoesNotExist"}, a_claim(), True),
    ],
)
def test_a_scope_selector_selects_claims_by_volume_attributes_class(
    expression: Object, claim: Object, is_counted: bool
) -> None:
    selector = {"matchExpressions": [{"scopeName": "VolumeAttributesClass", **expression}]}
    quota = parse_quota(a_quota({"persistentvolumeclaims": "1"}, scopeSelector=selector))
    usage = object_usage("persistentvolumeclaims", claim)
    assert bool(quota.masked("persistentvolumeclaims", claim, usage)) is is_counted


def test_scopes_of_pods_select_no_claims() -> None:
    quota = parse_quota(a_quota({"persistentvolumeclaims": "1"}, scopes=["NotTerminating"]))
    claim = a_claim()
    assert quota.masked("persistentvolumeclaims", claim, object_usage("persistentvolumeclaims", claim)) == {}


@pytest.mark.parametrize(
    ("requested", "allocated", "counted"), [("1500m", None, "2"), ("1Gi", "2Gi", "2Gi"), ("2Gi", "1Gi", "2Gi")]
)
def test_the_storage_of_a_claim_is_what_it_has_in_whole_bytes(
    requested: str, allocated: str | None, counted: str
) -> None:
    claim = a_claim(**({"allocatedResources": {"storage": allocated}} if allocated else {}))
    claim["spec"]["resources"]["requests"]["storage"] = requested
    assert str(object_usage("persistentvolumeclaims", claim)["requests.storage"]) == counted
