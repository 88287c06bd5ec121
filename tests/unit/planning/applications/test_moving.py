"""What goes along with a workload, and what is left behind."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.planning.applications.graph import Application, applications, identity_of_object
from federation.planning.applications.moving import (
    followers_to_list,
    left_behind,
    listable_parts,
    placements_if_moved,
    source_of,
    with_listed,
)
from federation.planning.followers.references import Identity, Reference

TYPES = {(type_.resource.group, type_.resource.kind): type_ for type_ in map(from_config, default_type_configs())}
WEST = frozenset({"west"})
SERVICE = {"kind": "Service", "name": "web"}


def find_type(group: str, kind: str) -> FederatedType | None:
    return TYPES.get((group, kind))


def an_object(api_version: str, kind: str, name: str = "web", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **fields}


WORKLOAD = an_object(
    "apps/v1",
    "Deployment",
    spec={
        "template": {"metadata": {"labels": {"a": "web"}}, "spec": {"serviceAccountName": "web", "containers": [{}]}}
    },
)
PARTS = {
    "account": an_object("v1", "ServiceAccount"),
    "service": an_object("v1", "Service", spec={"selector": {"a": "web"}}),
    "binding": an_object("rbac.authorization.k8s.io/v1", "RoleBinding", subjects=[{"kind": "ServiceAccount", "name": "web"}]),
    "monitor": an_object("monitoring.coreos.com/v1", "PodMonitor", spec={"selector": {"matchLabels": {"a": "web"}}}),
}  # fmt: skip


def federated(template: dict[str, Any], *clusters: str, **annotations: str) -> dict[str, Any]:
    placed = [{"cluster": name} for name in clusters]
    return {
        "metadata": {"name": "x", "namespace": "shop", "annotations": annotations},
        "spec": {"template": template, "placements": [{"controller": "scheduler", "placement": placed}]},
    }


def host(*parts: dict[str, Any], **annotations: str) -> dict[Identity, dict[str, Any]]:
    """The federated objects of the host: the workload in east, and these."""
    leader = federated(WORKLOAD, "east", **{names.ENABLE_FOLLOWER_SCHEDULING: "true", **annotations})
    return {identity_of_object(each["spec"]["template"]): each for each in (leader, *parts)}


def application_of(objects: dict[Identity, dict[str, Any]], *members: dict[str, Any]) -> Application:
    [found] = applications([*map(source_of, objects.values()), *members], find_type)
    return found


def listed(objects: dict[Identity, dict[str, Any]]) -> Any:
    text = followers_to_list(application_of(objects), objects, find_type)
    return None if text is None else orjson.loads(text)


def test_what_is_where_the_workload_is_is_listed_to_go_along() -> None:
    assert listed(host(federated(PARTS["service"], "east"), federated(PARTS["account"], "east"))) == [SERVICE]
    assert listed(host(federated(PARTS["binding"], "east"))) is None, "rights do not follow"
    assert listed(host(federated(PARTS["service"], "north"))) is None, "it is another cluster's"
    assert listed(host(federated(PARTS["service"], "east", **{names.DISABLE_FOLLOWING: "true"}))) is None
    kept = {names.ENABLE_FOLLOWER_SCHEDULING: "false"}
    assert listed(host(federated(PARTS["service"], "east"), **kept)) is None, "nothing follows by this policy"


def test_listed_followers_stay_listed_and_a_malformed_list_is_not_replaced() -> None:
    other = orjson.dumps([{"kind": "Service", "name": "other"}]).decode()
    objects = host(federated(PARTS["service"], "east"), **{names.FOLLOWERS: other})
    assert listed(objects) == [{"kind": "Service", "name": "other"}, SERVICE]
    complete = orjson.dumps([SERVICE]).decode()
    assert listed(host(federated(PARTS["service"], "east"), **{names.FOLLOWERS: complete})) is None
    assert with_listed({"metadata": {"annotations": {names.FOLLOWERS: "["}}}, [Reference("", "Service", "web")]) is None


def test_a_workload_that_is_not_federated_lists_nothing() -> None:
    application = application_of(host(federated(PARTS["service"], "east")))
    assert followers_to_list(application, {}, find_type) is None
    assert placements_if_moved(application, {}, WEST, find_type) == {}
    assert listable_parts(application, find_type) == [Reference("", "Service", "web")]


def left(
    objects: dict[Identity, dict[str, Any]], *members: dict[str, Any], there: tuple[dict[str, Any], ...] = ()
) -> list[tuple[str, bool]]:
    application = application_of(objects, *members)
    placed = placements_if_moved(application, objects, WEST, find_type)
    known = {"west": {identity_of_object(each) for each in there}}
    found = left_behind(application, WEST, placed, known, find_type, source="east")
    return [(str(each), each.is_essential) for each in found]


def test_followers_are_not_left_behind() -> None:
    assert left(host(federated(PARTS["service"], "east"), federated(PARTS["account"], "east"))) == []


@pytest.mark.parametrize(
    ("objects", "members", "expected", "is_essential"),
    [
        (host(federated(PARTS["binding"], "east")), (PARTS["account"],), "rolebinding/web, which grants rights to serviceaccount/web, is not in west: rights do not follow", False),
        (host(federated(PARTS["service"], "east", **{names.DISABLE_FOLLOWING: "true"})), (), "service/web, which exposes deployment/web, is not in west: its policy or the annotation kubeadmiral.io/disable-following", True),
        (host(), (PARTS["service"],), "is not in west: import it with: fedctl import --from-cluster east service/web -n shop", True),
        (host(), (PARTS["monitor"],), "podmonitor/web, which monitors deployment/web, is not in west: kind PodMonitor is not federated", False),
        (host(), (an_object("discovery.k8s.io/v1", "EndpointSlice") | {"metadata": {"name": "e", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}}}, PARTS["service"]), "endpointslice/e, which exposes service/web, is not in west: addresses that are written by hand", True),
    ],
)  # fmt: skip
def test_what_is_left_behind_is_named_with_the_remedy(
    objects: dict[Identity, dict[str, Any]], members: tuple[dict[str, Any], ...], expected: str, is_essential: bool
) -> None:
    found = [(text, essential) for text, essential in left(objects, *members) if expected in text]
    assert [essential for _, essential in found] == [is_essential]


def test_what_the_cluster_has_already_or_is_known_by_name_only_is_not_left_behind() -> None:
    assert left(host(), PARTS["service"], there=(PARTS["service"],)) == []
    assert left(host()) == [], "the service account is known by name only"
    default = an_object("v1", "ServiceAccount", "default")
    workload = {**WORKLOAD, "spec": {"template": {"spec": {"serviceAccountName": "default", "containers": [{}]}}}}
    [application] = applications([workload, default], find_type)
    assert left_behind(application, WEST, {}, {}, find_type, source="east") == [], "every cluster makes it"
