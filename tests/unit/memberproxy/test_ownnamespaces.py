"""Which requests to a member a role in a namespace of the host allows."""

import pytest

from federation.apimachinery.paths import parse
from federation.memberproxy.ownnamespaces import namespace_right

PODS = "/api/v1/namespaces/shop/pods"


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("list", PODS),
        ("watch", PODS),
        ("get", f"{PODS}/web"),
        ("get", f"{PODS}/web/log"),
        ("get", f"{PODS}/web/exec"),
        ("create", f"{PODS}/web/exec"),
        ("create", f"{PODS}/web/portforward"),
        ("get", "/apis/apps/v1/namespaces/shop/deployments/web/scale"),
        ("list", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"),
    ],
)
def test_it_needs_the_same_right_in_the_namespace_of_the_host(verb: str, path: str) -> None:
    right = namespace_right(parse(path), verb)
    assert right is not None
    assert (right.verb, right.namespace) == (verb, "shop")
    assert path.split("/")[2 if not right.group else 3] == right.version
    assert path.rstrip("/").endswith(right.subresource or right.name or right.resource)


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("list", "/api/v1/pods"),
        ("list", "/api/v1/nodes"),
        ("get", "/api/v1/namespaces/shop"),
        ("get", "/api/v1"),
        ("get", "/metrics"),
        ("list", "/api/v1/watch/namespaces/shop/pods"),
        ("create", PODS),
        ("update", f"{PODS}/web"),
        ("delete", f"{PODS}/web"),
        ("deletecollection", PODS),
        ("create", f"{PODS}/web/eviction"),
        ("create", f"{PODS}/web/log"),
        ("get", f"{PODS}/web/proxy"),
        ("get", "/api/v1/namespaces/shop/services/web/proxy"),
        ("create", "/api/v1/namespaces/shop/serviceaccounts/default/token"),
        ("create", "/apis/apps/v1/namespaces/shop/deployments/web/exec"),
        ("get", f"{PODS}/web/exec/more"),
    ],
)
def test_everything_else_needs_the_right_on_the_cluster(verb: str, path: str) -> None:
    assert namespace_right(parse(path), verb) is None
