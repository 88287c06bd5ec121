"""Accept headers as real clients send them."""

import pytest

from federation.apimachinery.errors import NotAcceptable
from federation.apiserver.http.negotiation import PLAIN, Shape, negotiate

TABLE = (
    b"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
AGGREGATED = (
    b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    b"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


@pytest.mark.parametrize(
    "accept",
    [
        b"",
        b"*/*",
        b"application/json",
        b"application/json, */*",
        b"application/vnd.kubernetes.protobuf,application/json",
        b"application/cbor;q=1, application/json;q=0.9",
        b"application/json;stream=watch",
        b"text/html, application/xhtml+xml, */*;q=0.1",
        b"application/json;as=Unknown;g=meta.k8s.io;v=v1, application/json",
        b"application/json;q=nonsense, */*",
    ],
)
def test_json_is_chosen_among_other_types(accept: bytes) -> None:
    assert negotiate(accept) == PLAIN


def test_tables_and_metadata_are_requested_by_parameters() -> None:
    answer = negotiate(TABLE)
    assert (answer.shape, answer.version, answer.content_type) == (Shape.TABLE, "v1", b"application/json")
    partial = b"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    assert negotiate(partial).shape is Shape.METADATA
    assert negotiate(b"application/yaml").is_yaml


def test_aggregated_discovery_is_for_discovery_only() -> None:
    answer = negotiate(AGGREGATED, is_discovery=True)
    assert answer.shape is Shape.DISCOVERY
    assert answer.content_type == b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert negotiate(AGGREGATED) == PLAIN
    assert negotiate(TABLE, is_discovery=True) == PLAIN


@pytest.mark.parametrize(
    "accept",
    [
        b"application/vnd.kubernetes.protobuf",
        b"text/html",
        b"application/json;q=0",
        b"application/json;as=Table;v=v9;g=meta.k8s.io",
    ],
)
def test_unsupported_types_are_not_acceptable(accept: bytes) -> None:
    with pytest.raises(NotAcceptable, match="only the following media types are accepted"):
        negotiate(accept)
