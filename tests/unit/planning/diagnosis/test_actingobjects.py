"""What `fedctl doctor` says about objects that act on an API server."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    API_SERVICES,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)
from federation.planning.diagnosis.actingobjects import diagnose_configurations
from federation.planning.diagnosis.level import Level

SERVICE = {"service": {"namespace": "operator", "name": "webhook"}}
URL = {"url": "https://example.com/"}
OURS = {"metadata": {"name": names.HOST_WEBHOOKS}, "webhooks": []}


def an_object(*, label: str = "", is_held: bool = False, policy: str = "", **fields: Any) -> Object:
    labels = {names.ACTS_ON_HOST: label} if label else {}
    labels |= {names.CLUSTER_PROPAGATION_POLICY_LABEL: policy} if policy else {}
    finalizers = [names.FEDERATE_FINALIZER] if is_held else []
    return {"metadata": {"name": "one", "labels": labels, "finalizers": finalizers}, **fields}


def webhooks(client_config: Object, **options: Any) -> Object:
    return an_object(webhooks=[{"name": "check.example.com", "clientConfig": client_config}], **options)


def api_service(status: str, **options: Any) -> Object:
    condition = {"type": "Available", "status": status, "reason": "ServiceNotFound"}
    return an_object(spec={"service": {"name": "metrics"}}, status={"conditions": [condition]}, **options)


@pytest.mark.parametrize(
    ("resource", "obj", "level", "text"),
    [
        (VALIDATING_WEBHOOKS, webhooks(URL), None, ""),
        (VALIDATING_WEBHOOKS, webhooks(SERVICE), Level.WARNING, "one acts nowhere"),
        (VALIDATING_WEBHOOKS, webhooks(URL, label="false"), Level.WARNING, "one acts nowhere"),
        (VALIDATING_WEBHOOKS, webhooks(SERVICE, is_held=True), Level.OK, "in members only: ValidatingWebhook"),
        (VALIDATING_WEBHOOKS, webhooks(SERVICE, policy="all"), Level.OK, "in members only"),
        (
            VALIDATING_WEBHOOKS,
            webhooks(SERVICE, label="true"),
            Level.ERROR,
            "cannot reach the service of webhook check",
        ),
        (VALIDATING_WEBHOOKS, webhooks(URL, label="true", is_held=True), None, ""),
        (ADMISSION_POLICIES, an_object(), None, ""),
        (ADMISSION_POLICIES, an_object(is_held=True), Level.OK, "in members only: ValidatingAdmissionPolicy one"),
        (API_SERVICES, api_service("False"), Level.WARNING, "has no server on the host (ServiceNotFound)"),
        (API_SERVICES, api_service("True"), None, ""),
        (API_SERVICES, api_service("False", is_held=True), Level.OK, "in members only"),
        (API_SERVICES, an_object(spec={"group": "apps"}), None, ""),
    ],
)
def test_where_an_object_acts(resource: Resource, obj: Object, level: Level | None, text: str) -> None:
    found = list(diagnose_configurations({resource: [obj]}))
    assert [each[0] for each in found] == ([] if level is None else [level])
    assert text in "".join(each[1] for each in found)


def test_on_another_api_server_what_members_get_acts_on_the_host_too() -> None:
    stored = {MUTATING_WEBHOOKS: [OURS], VALIDATING_WEBHOOKS: [webhooks(SERVICE, is_held=True), webhooks(SERVICE)]}
    assert [(level, text) for level, text, _ in diagnose_configurations(stored)] == [
        (Level.WARNING, "ValidatingWebhookConfiguration one acts on the host, too: the host is another API server")
    ]
