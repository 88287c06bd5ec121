"""Statuses come from outside: whatever a client writes into one, no later request may fail because of it."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.apiserver.objects import SELECTOR, TEMPLATE, a_definition, a_spec
from tests.conformance.apiserver.test_certificate_requests import a_request
from tests.support.apiserver import api_server
from tests.support.rest import MERGE, TABLE, Api, Object, Refused

from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema import model
from federation.apiserver.semantics.schema.model import Schema
from federation.client.kubeconfig import load_kubeconfig

ROUNDS, NIGHTLY_ROUNDS = 6, 36
"""Objects of each kind, with three random statuses each."""
TEXTS = ("", "x", "True", "Terminating", "Ready", "NamesAccepted", "-1", "é" * 30, "a/b:c")
TIMES = ("2020-01-01T00:00:00Z", None)
KINDS = [info for info in builtin_kinds() if "status" in info.subresources]


def a_value(schema: Schema, random_: random.Random, depth: int = 0) -> Any:
    """Return a value of the schema's type; every field may be absent, and every list empty."""
    match schema.kind:
        case model.STRUCT:
            if depth > 6:
                return {}
            chosen = [name for name in schema.properties if random_.random() < 0.6]
            return {name: a_value(schema.properties[name], random_, depth + 1) for name in chosen}
        case model.MAP:
            assert schema.additional is not None
            values = schema.additional
            return {random_.choice(TEXTS): a_value(values, random_, depth + 1) for _ in range(random_.randrange(3))}
        case model.LIST:
            assert schema.items is not None
            return [a_value(schema.items, random_, depth + 1) for _ in range(random_.randrange(4))]
        case model.INTEGER:
            return random_.choice((0, 1, -1, 2**31 - 1))
        case model.NUMBER:
            return random_.choice((0, -0.5, 1e300))
        case model.BOOLEAN:
            return random_.random() < 0.5
        case model.INT_OR_STRING:
            return random_.choice((0, "25%", "x"))
        case model.QUANTITY:
            return random_.choice(("1", "0.5", "1Gi", 3, None))
        case model.TIME:
            return random_.choice(TIMES)
        case model.STRING:
            return random_.choice(TEXTS)
    return random_.choice(({}, None, "x", 1))


def an_object(info: KindInfo) -> Object:
    """Return the smallest valid object of a kind."""
    plural, kind = info.resource.plural, info.resource.kind
    if kind == "CustomResourceDefinition":
        return a_definition("fuzz.example.com", subresources={"status": {}})
    obj: Object = {"metadata": {"name": "x"}, "spec": a_spec(plural)}
    if kind == "HorizontalPodAutoscaler":
        obj["spec"] = a_spec("autoscaling/v2/horizontalpodautoscalers")
    if kind == "ReplicationController":
        obj["spec"] = {"replicas": 0, "selector": SELECTOR["matchLabels"], "template": TEMPLATE}
    if kind == "PersistentVolume":
        obj["spec"] = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    if kind == "ValidatingAdmissionPolicy":
        obj["spec"] = {
            "validations": [{"expression": "true"}],
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": ["x"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}
                ]
            },
        }
    if kind == "PriorityLevelConfiguration":
        obj["spec"] = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    if kind == "FlowSchema":
        obj["spec"] = {"priorityLevelConfiguration": {"name": "x"}}
    if kind == "ServiceCIDR":
        obj["spec"] = {"cidrs": ["192.0.2.0/24"]}
    if kind == "CertificateSigningRequest":
        obj["spec"] = {"request": a_request(), "signerName": "example.com/signer", "usages": ["client auth"]}
    if kind == "APIService":
        obj["metadata"] = {"name": "v1.fuzz.example.com"}
        obj["spec"] = {
            "group": "fuzz.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "fuzz", "name": "x"},
        }
    if kind == "VolumeAttachment":
        obj["spec"] = {"attacher": "x", "nodeName": "x", "source": {"persistentVolumeName": "x"}}
    return obj


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with api_server(tmp_path_factory.mktemp("statuses")) as parts:
        api = Api(load_kubeconfig(parts.kubeconfig), "fuzz")
        api.create("namespaces", {"metadata": {"name": "fuzz"}})
        yield api
        api.close()


def answered(api: Api, method: str, url: str, body: Any = None, **options: Any) -> bool:
    """Send a request and return whether it succeeded; a refusal must be the client's fault."""
    try:
        api.send(method, url, body, **options)
    except Refused as refusal:
        if refusal.code >= 500:
            raise
        return False
    return True


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(NIGHTLY_ROUNDS, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("info", KINDS, ids=[info.resource.kind for info in KINDS])
def test_no_status_makes_a_request_fail(api: Api, info: KindInfo, rounds: int) -> None:
    resource = info.resource
    obj = an_object(info)
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    collection = f"{root}/namespaces/fuzz/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    url = f"{collection}/{obj['metadata']['name']}"
    random_ = random.Random(resource.kind)
    schema = info.schema.properties["status"]
    stored = 0
    for number in range(rounds):
        assert answered(api, "POST", collection, obj) or number == 0
        statuses = [a_value(schema, random_) for _ in range(3)]
        for status in statuses:
            stored += answered(api, "PATCH", f"{url}/status", {"status": status}, type_=MERGE)
            for accept in ("application/json", TABLE):
                assert answered(api, "GET", collection, accept=accept)
            answered(api, "PATCH", url, {"metadata": {"labels": {"a": str(random_.random())}}}, type_=MERGE)
            if "scale" in info.subresources:
                answered(api, "GET", f"{url}/scale")
                answered(api, "PATCH", f"{url}/scale", {"spec": {"replicas": number}}, type_=MERGE)
            if resource.kind == "Pod":
                answered(api, "POST", f"{url}/eviction", {"metadata": {"name": "x"}})
        answered(api, "DELETE", url)
        wait_gone(api, url)
    assert stored, "no status was valid"


def wait_gone(api: Api, url: str) -> None:
    """Remove the finalizers that wait for controllers which do not run here, and wait until the object is gone."""
    for _ in range(200):
        if not answered(api, "GET", url):
            return
        answered(api, "PATCH", url, {"metadata": {"finalizers": None}}, type_=MERGE)
    raise AssertionError(f"{url} was not removed")
