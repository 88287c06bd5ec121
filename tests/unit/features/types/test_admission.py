"""FederatedTypeConfigs that cannot work are refused, with the field and the remedy."""

import copy
import uuid
from dataclasses import replace
from typing import Any

import pytest

from federation.api.federatedtype import default_type_configs
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES, Object, Resource
from federation.apiserver.admission.requests import AdmissionRequest
from federation.features.types.admission import TypeConfigAdmission

SERVED = {("v1", each.kind): each for each in (CONFIGMAPS, NAMESPACES)}
SHIPPED = {config["spec"]["sourceType"]["kind"]: config for config in default_type_configs()}


def a_config(kind: str = "ConfigMap", **source: Any) -> Object:
    config: Object = copy.deepcopy(SHIPPED[kind])
    config["spec"]["sourceType"] |= source
    return config


def with_spec(**spec: Any) -> Object:
    config = a_config()
    return {**config, "spec": {**config["spec"], **spec}}


def with_rules(*paths: str, kind: str = "ConfigMap", expression: str = "1") -> Object:
    config = a_config(kind)
    rules = [{"path": path, "expression": expression} for path in paths]
    return {**config, "spec": {**config["spec"], "statusAggregation": {"rules": rules}}}


async def problems(
    config: Object, old: Object | None = None, *, others: tuple[Object, ...] = (), **fields: Any
) -> list[tuple[str, str]]:
    """Return the fields and messages of what is refused."""

    async def stored() -> list[Object]:
        return list(others)

    def find(api_version: str, kind: str) -> Resource | None:
        return SERVED.get((api_version, kind))

    request = AdmissionRequest(
        uid=str(uuid.uuid4()),
        operation="CREATE" if old is None else "UPDATE",
        resource=FEDERATED_TYPE_CONFIGS,
        versions=("v1alpha1",),
        subresource="",
        namespace="",
        name=config["metadata"]["name"],
        user={},
        dry_run=False,
        obj=config,
        old=old,
        namespace_labels=None,
    )
    try:
        await TypeConfigAdmission(find, stored).validate(
            replace(request, **fields), lambda _: pytest.fail("no rights are asked for")
        )
    except Invalid as error:
        return [(each["field"], each["message"]) for each in error.details["causes"]]
    return []


@pytest.mark.parametrize("kind", list(SHIPPED))
async def test_shipped_configurations_are_accepted_and_may_be_changed_but_for_their_source(kind: str) -> None:
    config = a_config(kind)
    assert await problems(config) == []
    stages = {**config, "spec": {**config["spec"], "controllers": []}}
    assert await problems(stages, config, others=(config,)) == []
    ((field, message),) = await problems(a_config(kind, pluralName="others"), config)
    assert (field, message) == (
        "spec.sourceType",
        "Invalid value: only version may change; delete the configuration and create another one for other fields",
    )


async def test_the_version_may_change_to_one_that_the_host_serves() -> None:
    config, other = a_config(), a_config(version="v9")
    assert await problems(config, other) == []
    assert await problems(other) == []  # a definition may follow
    assert await problems({**other, "spec": {**other["spec"], "controllers": []}}, other) == []
    assert await problems(other, config) == [
        ("spec.sourceType.version", "Invalid value: the host does not serve ConfigMap in v9")
    ]


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        (a_config(scope="Everywhere"), "spec.sourceType.scope", 'supported values: "Namespaced", "Cluster"'),
        (a_config(scope="Cluster"), "spec.sourceType.scope", 'ConfigMap has the scope "Namespaced"'),
        (a_config("Namespace", scope="Namespaced"), "spec.sourceType.scope", 'Namespace has the scope "Cluster"'),
        (a_config(pluralName="maps"), "spec.sourceType.pluralName", 'the host serves ConfigMap as "configmaps"'),
        (with_spec(controllers=[["nobody"]]), "spec.controllers[0][0]", "no controller would ever pass it"),
        (
            with_spec(controllers=[["kubeadmiral.io/global-scheduler"], ["kubeadmiral.io/global-scheduler"]]),
            "spec.controllers[1][0]",
            "Duplicate value",
        ),
        (with_rules("status.conditions", kind="Deployment"), "spec.statusAggregation.rules", "a merge of its own"),
        (with_rules("status.observedGeneration"), "spec.statusAggregation.rules[0].path", "choose another field"),
        (with_rules("status.a", "status.a.b"), "spec.statusAggregation.rules[1].path", "an earlier rule computes"),
        (with_rules("status.a.b", "status.a"), "spec.statusAggregation.rules[1].path", "an earlier rule computes"),
        (with_rules("status.a", expression="("), "spec.statusAggregation.rules[0].expression", "Invalid value"),
    ],
)
async def test_a_configuration_that_cannot_work_names_its_field(config: Object, field: str, message: str) -> None:
    ((found, text),) = await problems(config)
    assert found == field
    assert message in text


def with_component(**fields: Any) -> Object:
    return with_spec(components=[{"name": "workers", "at": "spec.workers", "podSpecs": ["spec"], **fields}])


@pytest.mark.parametrize(
    ("config", "field", "message"),
    [
        (with_component(podSpecs=[]), "spec.components[0]", "say what a pod needs"),
        (with_component(requests=[{}]), "spec.components[0].requests[0]", "one of resource and resourcePath"),
        (
            with_component(requests=[{"resource": "cpu", "resourcePath": "name"}]),
            "spec.components[0].requests[0]",
            "one of resource and resourcePath",
        ),
        (
            with_component(requests=[{"resource": "cpu", "default": "many"}]),
            "spec.components[0].requests[0].default",
            "write a quantity",
        ),
        (
            with_component(requests=[{"resource": "memory", "format": "Java", "overhead": {"atLeast": "some"}}]),
            "spec.components[0].requests[0].overhead.atLeast",
            "write a quantity",
        ),
    ],
)
async def test_components_that_cannot_be_counted_name_their_field(config: Object, field: str, message: str) -> None:
    (found,) = await problems(config)
    assert found[0] == field
    assert message in found[1]


async def test_components_that_can_be_counted_are_accepted() -> None:
    requests = [{"resource": "cpu", "default": "500m"}, {"resource": "memory", "format": "Java", "default": "1g"}]
    assert await problems(with_component(requests=requests)) == []


async def test_rules_of_different_fields_and_kinds_that_are_not_served_are_accepted() -> None:
    assert await problems(with_rules("status.a", "status.b")) == []
    assert await problems(a_config(group="example.com", pluralName="anything")) == []


async def test_a_kind_has_one_configuration() -> None:
    other = {**a_config(), "metadata": {"name": "first"}}
    assert await problems(a_config(), others=(other,)) == [
        ("spec.sourceType", 'Duplicate value: ConfigMap is federated by "first" already; change that one')
    ]
    changed = {**other, "spec": {"sourceType": {**other["spec"]["sourceType"], "version": "v2"}}}
    assert len(await problems(a_config(), others=(changed,))) == 1
    for different in ({"kind": "Secret"}, {"group": "example.com"}):
        changed = {**other, "spec": {"sourceType": {**other["spec"]["sourceType"], **different}}}
        assert await problems(a_config(), others=(changed,)) == []


async def test_what_changes_no_spec_is_always_accepted() -> None:
    broken = with_spec(controllers=[["nobody"]])
    assert await problems(broken, broken) == []
    assert await problems(broken, subresource="status") == []
    assert await problems(broken, operation="DELETE") == []


@pytest.mark.parametrize(
    ("rule", "refused"),
    [
        ({"path": "data"}, None),
        ({"path": "/data/app.yaml", "expression": "member > template ? member : template"}, None),
        ({"path": "spec.containers[].image", "expression": "object.metadata.name == 'a' ? member : template"}, None),
        ({"path": "metadata.name"}, "path"),
        ({"path": "status.phase"}, "path"),
        ({"path": "spec.containers[]"}, "path"),
        ({"path": "data.a", "expression": "member >"}, "expression"),
        ({"path": "data.a", "expression": "object.data"}, "expression"),
        ({"path": "data.a", "expression": "unknown"}, "expression"),
    ],
)
async def test_a_retention_rule_names_a_field_of_the_template_and_compiles(rule: Object, refused: str | None) -> None:
    found = await problems(with_spec(retention=[rule]))
    assert [field for field, _ in found] == ([] if refused is None else [f"spec.retention[0].{refused}"])
