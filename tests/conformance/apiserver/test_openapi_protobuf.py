"""Conformance area: `/openapi/v2` as protobuf, the form in which kubectl reads it."""

from collections.abc import Iterator

import pytest
from tests.support.rest import Api, refused

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
OLD_SPELLING = PROTOBUF.replace(".v1.0", "@v1.0")
PATHS, DEFINITIONS = 8, 9


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of every length-delimited field; the others are skipped."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(message):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, message[at : at + size]
            at += size
        elif key & 7 == 1:
            at += 8
        else:
            assert key & 7 == 0, f"wire type {key & 7}"
            varint()


def named(message: bytes, number: int) -> dict[str, bytes]:
    """Return a map: a repeated field `number` of messages with a name and a value."""
    entries = [dict(fields(entry)) for found, entry in fields(message) if found == number]
    return {entry[1].decode(): entry.get(2, b"") for entry in entries}


@pytest.mark.parametrize("accept", [PROTOBUF, OLD_SPELLING, f"{OLD_SPELLING},application/json"])
def test_the_old_document_is_served_as_protobuf(api: Api, accept: str) -> None:
    answer = api.send("GET", "/openapi/v2", accept=accept)
    assert answer.headers["content-type"] == PROTOBUF
    content = dict(fields(answer.content))
    assert content[1] == b"2.0"
    json = api.send("GET", "/openapi/v2").json()
    definitions = named(content[DEFINITIONS], 1)
    builtin = {name for name in json["definitions"] if name.startswith("io.k8s.")}
    assert builtin <= definitions.keys()
    assert {path for path in json["paths"] if path.startswith("/api/v1/")} <= named(content[PATHS], 2).keys()


def test_a_definition_has_its_fields_and_extensions(api: Api) -> None:
    content = dict(fields(api.send("GET", "/openapi/v2", accept=PROTOBUF).content))
    definitions = named(content[DEFINITIONS], 1)
    kind = dict(fields(definitions["io.k8s.api.core.v1.ConfigMap"]))
    data = dict(fields(named(kind[25], 1)["data"]))
    assert dict(fields(data[22])) == {1: b"object"}
    (additional,) = [value for _, value in fields(data[21])]
    assert dict(fields(dict(fields(additional))[22])) == {1: b"string"}
    extensions = named(definitions["io.k8s.api.core.v1.ConfigMap"], 31)
    assert b"ConfigMap" in extensions["x-kubernetes-group-version-kind"]
    spec = dict(fields(definitions["io.k8s.api.core.v1.Pod"]))
    assert dict(fields(named(spec[25], 1)["spec"]))[1] == b"#/definitions/io.k8s.api.core.v1.PodSpec"


def test_an_operation_has_its_parameters(api: Api) -> None:
    content = dict(fields(api.send("GET", "/openapi/v2", accept=PROTOBUF).content))
    item = dict(fields(named(content[PATHS], 2)["/api/v1/namespaces/{namespace}/configmaps/{name}"]))
    patch = named(item[8], 13)
    assert b"ConfigMap" in patch["x-kubernetes-group-version-kind"]
    assert b"dryRun" in item[8] or b"dryRun" in content[10]
    with refused(406):
        api.send("GET", "/openapi/v2", accept="application/xml")
