"""ResourceQuotas: counts, compute resources, scopes, the texts of refusals, and their release."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_deployment, a_pod, a_service, a_spec
from tests.support.rest import Api, Object, Refused, eventually, refused


def a_quota(api: Api, hard: dict[str, str], name: str = "q", **spec: Any) -> None:
    """Create a quota and wait for its status."""
    api.create("resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    eventually(lambda: (api.get("resourcequotas", name).get("status") or {}).get("used") is not None)


def used(api: Api, name: str = "q") -> dict[str, str]:
    return api.get("resourcequotas", name)["status"]["used"]


def a_sized_pod(
    name: str = "p", *, requests: Object | None = None, limits: Object | None = None, **spec: Any
) -> Object:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    pod = a_pod(name, **spec)
    pod["spec"]["containers"][0]["resources"] = resources
    return pod


@pytest.mark.every_store
def test_a_count_quota_refuses_the_object_beyond_it_with_kubernetes_text(api: Api) -> None:
    api.create("secrets", {"metadata": {"name": "before"}})
    a_quota(api, {"count/secrets": "2", "secrets": "5"})
    assert used(api) == {"count/secrets": "1", "secrets": "1"}
    api.create("secrets", {"metadata": {"name": "second"}})
    eventually(lambda: used(api)["count/secrets"] == "2")
    text = (
        'secrets "third" is forbidden: exceeded quota: q, requested: count/secrets=1, used: count/secrets=2,'
        " limited: count/secrets=2"
    )
    with refused(403, "Forbidden") as caught:
        api.create("secrets", {"metadata": {"name": "third"}})
    assert caught.value.message == text


@pytest.mark.every_store
def test_a_deletion_releases_the_quota(api: Api) -> None:
    a_quota(api, {"count/deployments.apps": "1"})
    api.create("deployments", a_deployment("one"))
    with refused(403, "Forbidden", "exceeded quota: q, requested: count/deployments.apps=1"):
        api.create("deployments", a_deployment("two"))
    api.delete("deployments", "one")
    eventually(lambda: used(api) == {"count/deployments.apps": "0"})
    api.create("deployments", a_deployment("two"))


def test_a_create_that_fails_uses_nothing(api: Api) -> None:
    a_quota(api, {"count/secrets": "2"})
    api.create("secrets", {"metadata": {"name": "one"}})
    with refused(409, "AlreadyExists"):
        api.create("secrets", {"metadata": {"name": "one"}})
    # Kubernetes releases what the refused create had reserved when its controller counts again, here after this change.
    api.patch("resourcequotas", "q", {"spec": {"hard": {"count/secrets": "3"}}})
    eventually(lambda: used(api)["count/secrets"] == "1")


@pytest.mark.every_store
@pytest.mark.ours("kube-apiserver keeps the reservation until its controller counts the next time")
def test_a_create_that_fails_uses_nothing_at_once(api: Api) -> None:
    a_quota(api, {"count/secrets": "2"})
    api.create("secrets", {"metadata": {"name": "one"}})
    with refused(409, "AlreadyExists"):
        api.create("secrets", {"metadata": {"name": "one"}})
    eventually(lambda: used(api)["count/secrets"] == "1")
    api.create("secrets", {"metadata": {"name": "two"}})


def test_a_dry_run_is_checked_and_uses_nothing(api: Api) -> None:
    a_quota(api, {"count/secrets": "1"})
    api.create("secrets", {"metadata": {"name": "one"}}, dryRun="All")
    api.create("secrets", {"metadata": {"name": "one"}})
    with refused(403, "Forbidden", "exceeded quota"):
        api.create("secrets", {"metadata": {"name": "two"}}, dryRun="All")


def test_updates_are_not_refused_by_a_full_count_quota(api: Api) -> None:
    api.create("secrets", {"metadata": {"name": "one"}})
    a_quota(api, {"count/secrets": "1"})
    api.patch("secrets", "one", {"metadata": {"labels": {"a": "b"}}})


def test_apply_is_refused_like_create(api: Api) -> None:
    a_quota(api, {"count/secrets": "0"})
    with refused(403, "Forbidden", "exceeded quota: q"):
        api.apply("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}})


def test_a_changed_limit_counts_at_once(api: Api) -> None:
    a_quota(api, {"count/secrets": "0"})
    api.patch("resourcequotas", "q", {"spec": {"hard": {"count/secrets": "1"}}})
    eventually(lambda: api.get("resourcequotas", "q")["status"]["hard"] == {"count/secrets": "1"})
    api.create("secrets", {"metadata": {"name": "one"}})


def test_every_matching_quota_is_charged(api: Api) -> None:
    a_quota(api, {"count/secrets": "5"}, "wide")
    a_quota(api, {"count/secrets": "1"}, "zz-narrow")
    api.create("secrets", {"metadata": {"name": "one"}})
    with refused(403, "Forbidden", "exceeded quota: zz-narrow"):
        api.create("secrets", {"metadata": {"name": "two"}})
    eventually(lambda: used(api, "wide")["count/secrets"] == "1")


@pytest.mark.every_store
def test_concurrent_creates_do_not_exceed_a_quota(api: Api) -> None:
    a_quota(api, {"count/secrets": "5"})

    def create(number: int) -> int:
        try:
            api.create("secrets", {"metadata": {"name": f"s{number}"}})
        except Refused as error:
            return error.code
        return 201

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(create, range(24)))
    assert codes.count(201) == 5
    assert len(api.names("secrets")) == 5


def test_pods_count_their_requests_and_limits(api: Api) -> None:
    a_quota(api, {"pods": "3", "requests.cpu": "1", "requests.memory": "1Gi", "limits.cpu": "2"})
    sized = {"requests": {"cpu": "600m", "memory": "256Mi"}, "limits": {"cpu": "1"}}
    api.create("pods", a_sized_pod("one", **sized))
    eventually(
        lambda: used(api) == {"pods": "1", "requests.cpu": "600m", "requests.memory": "256Mi", "limits.cpu": "1"}
    )
    text = "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    with refused(403, "Forbidden", text):
        api.create("pods", a_sized_pod("two", **sized))


def test_pods_must_specify_what_a_quota_limits(api: Api) -> None:
    a_quota(api, {"requests.cpu": "1", "limits.memory": "1Gi"})
    with refused(403, "Forbidden") as caught:
        api.create("pods", a_pod("bare"))
    assert (
        caught.value.message == 'pods "bare" is forbidden: failed quota: q: must specify limits.memory for: main;'
        " requests.cpu for: main"
    )


def test_a_finished_pod_releases_its_compute_resources(api: Api) -> None:
    a_quota(api, {"pods": "1", "count/pods": "5", "cpu": "1"})
    api.create("pods", a_sized_pod("one", requests={"cpu": "1"}))
    api.patch("pods", "one", {"status": {"phase": "Succeeded"}}, "status")
    eventually(lambda: used(api) == {"pods": "0", "count/pods": "1", "cpu": "0"})
    api.create("pods", a_sized_pod("two", requests={"cpu": "1"}))


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("Terminating", {"activeDeadlineSeconds": 60}, {}),
        ("NotTerminating", {}, {"activeDeadlineSeconds": 60}),
    ],
)
def test_a_scope_selects_the_pods_of_a_quota(api: Api, scope: str, inside: Object, outside: Object) -> None:
    a_quota(api, {"pods": "0"}, scopes=[scope])
    api.create("pods", a_pod("outside", **outside))
    with refused(403, "Forbidden", "exceeded quota: q"):
        api.create("pods", a_pod("inside", **inside))


def test_the_best_effort_scopes_select_by_requests(api: Api) -> None:
    a_quota(api, {"pods": "0"}, "best-effort", scopes=["BestEffort"])
    with refused(403, "Forbidden", "exceeded quota: best-effort"):
        api.create("pods", a_pod("bare"))
    api.create("pods", a_sized_pod("sized", requests={"cpu": "1"}))


def test_services_count_ports_and_load_balancers(api: Api) -> None:
    a_quota(api, {"services": "5", "services.nodeports": "2", "services.loadbalancers": "1"})
    api.create("services", a_service("balanced", type="LoadBalancer"))
    eventually(lambda: used(api) == {"services": "1", "services.nodeports": "1", "services.loadbalancers": "1"})
    api.create("services", a_service("plain"))
    with refused(403, "Forbidden", "requested: services.loadbalancers=1, used: services.loadbalancers=1"):
        api.patch("services", "plain", {"spec": {"type": "LoadBalancer"}})
    api.patch("services", "balanced", {"spec": {"type": "ClusterIP"}})
    eventually(lambda: used(api) == {"services": "2", "services.nodeports": "0", "services.loadbalancers": "0"})


def test_claims_count_their_storage(api: Api) -> None:
    named = "none.storageclass.storage.k8s.io/requests.storage"
    a_quota(api, {"requests.storage": "2Gi", "persistentvolumeclaims": "5", named: "2Gi"})
    claim: Object = {"metadata": {"name": "one"}, "spec": a_spec("persistentvolumeclaims")}
    api.create("persistentvolumeclaims", claim)
    eventually(lambda: used(api) == {"requests.storage": "1Gi", "persistentvolumeclaims": "1", named: "1Gi"})
    claim = {"metadata": {"name": "two"}, "spec": {**claim["spec"], "resources": {"requests": {"storage": "2Gi"}}}}
    with refused(403, "Forbidden", f"requested: {named}=2Gi,requests.storage=2Gi"):
        api.create("persistentvolumeclaims", claim)


def test_custom_resources_are_counted(api: Api, group: str, widgets: str) -> None:
    counted = f"count/widgets.{group}"
    api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {counted: "1", "secrets": "1"}}})

    def is_counted() -> bool:
        # Kubernetes' controller notices new kinds within 30 s, and counts them at the next change of the quota.
        secrets = int(api.get("resourcequotas", "q")["spec"]["hard"]["secrets"])
        api.patch("resourcequotas", "q", {"spec": {"hard": {"secrets": str(secrets + 1)}}})
        return counted in (api.get("resourcequotas", "q").get("status") or {}).get("used", {})

    eventually(is_counted, wait_s_max=90)
    widget = {"apiVersion": widgets.rpartition("/")[0], "kind": "Widget", "spec": {"size": 1}}
    api.create(widgets, {**widget, "metadata": {"name": "one"}})
    with refused(403, "Forbidden", f"used: count/widgets.{group}=1"):
        api.create(widgets, {**widget, "metadata": {"name": "two"}})


def test_a_quota_of_another_kind_does_not_refuse(api: Api) -> None:
    a_quota(api, {"count/secrets": "0"})
    api.create("configmaps", a_config_map())


def test_claims_count_by_volume_attributes_class(api: Api) -> None:
    expression = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}
    a_quota(api, {"persistentvolumeclaims": "1"}, scopeSelector={"matchExpressions": [expression]})
    spec = a_spec("persistentvolumeclaims")
    gold = {**spec, "volumeAttributesClassName": "gold"}
    api.create("persistentvolumeclaims", {"metadata": {"name": "plain"}, "spec": spec})
    api.create("persistentvolumeclaims", {"metadata": {"name": "one"}, "spec": gold})
    eventually(lambda: used(api) == {"persistentvolumeclaims": "1"})
    with refused(403, "Forbidden", "exceeded quota: q"):
        api.create("persistentvolumeclaims", {"metadata": {"name": "two"}, "spec": gold})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"hard": {"pods": "1"}, "scopes": ["Nonsense"]}, "unsupported scope"),
        ({"hard": {"services": "1"}, "scopes": ["Terminating"]}, "unsupported scope applied to resource"),
        ({"hard": {"pods": "1", "cpu": "1"}, "scopes": ["BestEffort"]}, "unsupported scope applied to resource"),
        ({"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}, "conflicting scopes"),
        ({"hard": {"pods": "1"}, "selector": ("Terminating", "In", ["x"])}, "must be 'Exists' when scope is any of"),
        ({"hard": {"pods": "1"}, "selector": ("PriorityClass", "In", [])}, "must be at least one value"),
        ({"hard": {"pods": "1"}, "selector": ("PriorityClass", "Exists", ["x"])}, "must be no value"),
        ({"hard": {"pods": "1"}, "selector": ("PriorityClass", "Equals", ["x"])}, "not a valid selector operator"),
    ],
    ids=[
        "unknown",
        "of a service",
        "best effort cpu",
        "conflict",
        "values",
        "no values",
        "needless values",
        "operator",
    ],
)
def test_scopes_that_cannot_work_are_refused(api: Api, spec: Object, message: str) -> None:
    spec = dict(spec)
    if "selector" in spec:
        scope, operator, values = spec.pop("selector")
        expression = {"scopeName": scope, "operator": operator, "values": values}
        spec["scopeSelector"] = {"matchExpressions": [expression]}
    with refused(422, "Invalid", message):
        api.create("resourcequotas", {"metadata": {"name": "q"}, "spec": spec})


def test_the_scopes_of_a_quota_stay(api: Api) -> None:
    a_quota(api, {"pods": "1"}, scopes=["Terminating"])
    with refused(422, "Invalid", "field is immutable"):
        api.patch("resourcequotas", "q", {"spec": {"scopes": ["NotTerminating"]}})
