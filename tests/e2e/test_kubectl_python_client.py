"""The official Python client against a real HTTPS server, through the same kubeconfig as kubectl's."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, dynamic, watch

from tests.support.apiserver import Parts

pytestmark = [pytest.mark.e2e, pytest.mark.real_time]


@pytest.fixture
def api(parts: Parts) -> Iterator[Any]:
    with warnings.catch_warnings():
        # The client leaves its temporary certificate files and pooled sockets to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        yield config.new_client_from_config(str(parts.kubeconfig))


def test_typed_objects_are_written_and_watched(api: Any) -> None:
    core = client.CoreV1Api(api)
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="py"), data={"a": "b"})
    created = core.create_namespaced_config_map("default", body)
    assert created.metadata.uid
    only = {"field_selector": "metadata.name=py", "timeout_seconds": 1}
    events = watch.Watch().stream(core.list_namespaced_config_map, "default", **only)
    assert [(event["type"], event["object"].metadata.name) for event in events] == [("ADDED", "py")]
    core.patch_namespaced_config_map("py", "default", {"data": {"c": "d"}})
    assert core.read_namespaced_config_map("py", "default").data == {"a": "b", "c": "d"}
    core.delete_namespaced_config_map("py", "default")
    with pytest.raises(client.ApiException) as caught:
        core.read_namespaced_config_map("py", "default")
    assert caught.value.status == 404


def test_dynamic_objects_and_reviews_are_served(api: Any, tmp_path: Path) -> None:
    resources = dynamic.DynamicClient(api).resources
    namespaces = resources.get(api_version="v1", kind="Namespace")
    assert "default" in [item.metadata.name for item in namespaces.get().items]
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert client.AuthorizationV1Api(api).create_self_subject_access_review(review).status.allowed
