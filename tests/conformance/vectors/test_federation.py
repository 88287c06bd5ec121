"""Vectors `federate_derived`: a source object and the federated object that comes of it."""

from typing import Any

import orjson
from tests.support.vectors import each_case, filled, load

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Resource
from federation.planning.federatedobject import builder


def _type(source: dict[str, Any], controllers: list[list[str]]) -> FederatedType:
    group, _, version = source["apiVersion"].rpartition("/")
    namespaced = bool(source["metadata"].get("namespace"))
    resource = Resource(group, version, source["kind"], source["kind"].lower() + "s", namespaced)
    stages = tuple(tuple(stage) for stage in controllers if stage)
    return FederatedType(resource.group_resource, resource, stages)


@each_case(load("federate_derived"))
def test_a_source_becomes_the_federated_object_of_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], ftcControllers=[])
    expected = filled(case["expected"], pendingControllers=[], mergePatch={}, annotations={}, labels={}, template={})
    source = given["source"]
    type_ = _type(source, given["ftcControllers"])

    federated = builder.build(source, type_)

    annotations = dict(federated["metadata"]["annotations"])
    assert orjson.loads(annotations.pop(names.PENDING_CONTROLLERS)) == expected["pendingControllers"]
    assert orjson.loads(annotations.pop(names.TEMPLATE_GENERATOR_MERGE_PATCH)) == expected["mergePatch"]
    assert annotations == expected["annotations"]
    assert federated["metadata"]["labels"] == expected["labels"]
    assert federated["spec"]["template"] == expected["template"]
    assert federated["kind"] == ("FederatedObject" if type_.resource.namespaced else "ClusterFederatedObject")
