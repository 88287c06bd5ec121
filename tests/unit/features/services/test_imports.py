"""Where imported Services and EndpointSlices are placed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.apimachinery import mergepatch
from federation.features.services.names import SERVICE_IMPORT_CONTROLLER
from federation.features.services.rules.exports import to_imported
from federation.features.services.rules.imports import derived_service, importing_clusters, plan_service, plan_slice
from federation.planning.federatedobject.placements import effective_placement, overrides_of, placement_of

CLUSTERS = st.frozensets(st.sampled_from(["a", "b", "c", "d"]))
IMPORT = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"type": "ClusterSetIP", "ports": [{"port": 80}]}}


def placed(controller: str, clusters: frozenset[str]) -> dict[str, Any]:
    entry = {"controller": controller, "placement": [{"cluster": name} for name in sorted(clusters)]}
    return {"metadata": {"resourceVersion": "1"}, "spec": {"placements": [entry] if clusters else []}}


def patched(federated: dict[str, Any], patch: dict[str, Any] | None) -> Any:
    return federated if patch is None else mergepatch.apply_merge_patch(federated, patch)


@given(CLUSTERS, CLUSTERS)
def test_the_service_goes_to_both_and_is_derived_only_where_it_is_imported_only(
    scheduled: frozenset[str], importing: frozenset[str]
) -> None:
    federated = placed(names.GLOBAL_SCHEDULER, scheduled)
    after = patched(federated, plan_service(federated, IMPORT, importing))
    assert effective_placement(after) == scheduled | importing
    assert placement_of(after, names.GLOBAL_SCHEDULER) == sorted(scheduled)
    assert overrides_of(after, SERVICE_IMPORT_CONTROLLER).keys() == importing - scheduled
    assert plan_service(after, IMPORT, importing) is None, "a second write would change nothing"


@given(CLUSTERS, CLUSTERS)
def test_an_import_that_ends_takes_only_its_own_placement_along(
    scheduled: frozenset[str], importing: frozenset[str]
) -> None:
    federated = placed(names.GLOBAL_SCHEDULER, scheduled)
    during = patched(federated, plan_service(federated, IMPORT, importing))
    after = patched(during, plan_service(during, None, ()))
    assert effective_placement(after) == scheduled
    assert overrides_of(after, SERVICE_IMPORT_CONTROLLER) == {}


@given(CLUSTERS)
def test_a_slice_does_not_go_to_its_own_cluster(importing: frozenset[str]) -> None:
    original = {"metadata": {"name": "s", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}}}
    template = to_imported("a", {**original, "addressType": "IPv4"})
    federated = {"metadata": {"resourceVersion": "1"}, "spec": {"template": template}}
    after = patched(federated, plan_slice(federated, importing))
    assert effective_placement(after) == importing - {"a"}


def test_an_import_that_is_being_deleted_has_no_clusters() -> None:
    federated = placed(names.GLOBAL_SCHEDULER, frozenset("ab"))
    assert importing_clusters(federated) == {"a", "b"}
    federated["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert importing_clusters(federated) == importing_clusters(None) == frozenset()


def test_a_headless_import_makes_a_headless_service() -> None:
    affinity = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}
    service = derived_service({**IMPORT, "spec": {"type": "Headless", "ports": [], **affinity}})
    assert service["spec"] == {"type": "ClusterIP", "ports": [], "clusterIP": "None", **affinity}
