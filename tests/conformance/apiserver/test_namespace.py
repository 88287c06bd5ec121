"""Conformance area: namespaces."""

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_pod
from tests.support.rest import Api, eventually, refused


def test_a_namespace_is_active_and_labelled(api: Api) -> None:
    namespace = api.get("namespaces", api.namespace)
    assert namespace["status"]["phase"] == "Active"
    assert namespace["spec"]["finalizers"] == ["kubernetes"]
    assert namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] == api.namespace


@pytest.mark.every_store
def test_a_namespace_gets_a_service_account(api: Api) -> None:
    """[sig-auth] ServiceAccounts: a default service account is made in every namespace."""
    eventually(lambda: api.exists("serviceaccounts", "default"))


def test_the_basic_namespaces_exist(api: Api) -> None:
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= set(api.names("namespaces"))


def test_the_basic_namespaces_may_not_be_deleted(api: Api) -> None:
    with refused(403, "Forbidden", "this namespace may not be deleted"):
        api.delete("namespaces", "kube-system")


@pytest.mark.every_store
def test_a_deleted_namespace_takes_its_content_with_it(api: Api) -> None:
    """[sig-api-machinery] Namespaces should ensure that all pods and services are removed when a namespace is deleted."""
    name = f"{api.namespace}-x"
    api.create("namespaces", {"metadata": {"name": name}})
    for plural, body in (("configmaps", a_config_map()), ("pods", a_pod())):
        api.send("POST", api.url(plural, namespace=name), body)
    assert api.delete("namespaces", name)["status"]["phase"] == "Terminating"
    api.wait_gone("namespaces", name)
    api.create("namespaces", {"metadata": {"name": name}})
    assert api.list("pods", namespace=name)["items"] == []
    api.delete("namespaces", name)


def test_a_terminating_namespace_waits_for_finalizers_and_takes_nothing_new(api: Api) -> None:
    name = f"{api.namespace}-x"
    api.create("namespaces", {"metadata": {"name": name}})
    held = api.url("configmaps", namespace=name)
    api.send("POST", held, a_config_map("held", finalizers=["example.com/wait"]))
    api.delete("namespaces", name)

    def says_so() -> bool:
        conditions = api.get("namespaces", name)["status"].get("conditions") or []
        return ("NamespaceContentRemaining", "True") in {(entry["type"], entry["status"]) for entry in conditions}

    eventually(says_so)
    with refused(403, "Forbidden", "because it is being terminated") as caught:
        api.send("POST", held, a_config_map("late"))
    assert caught.value.causes[0]["reason"] == "NamespaceTerminating"
    api.send("PATCH", f"{held}/held", {"metadata": {"finalizers": None}}, type_="application/merge-patch+json")
    api.wait_gone("namespaces", name)


def test_the_conditions_of_a_terminating_namespace_tell_what_it_waits_for(api: Api) -> None:
    name = f"{api.namespace}-x"
    api.create("namespaces", {"metadata": {"name": name}})
    held = api.url("configmaps", namespace=name)
    api.send("POST", held, a_config_map("held", finalizers=["example.com/wait"]))
    api.delete("namespaces", name)

    def conditions() -> dict[str, tuple[str, str, str]]:
        found = api.get("namespaces", name)["status"].get("conditions") or []
        return {entry["type"]: (entry["status"], entry["reason"], entry["message"]) for entry in found}

    eventually(lambda: conditions().get("NamespaceFinalizersRemaining", ("",))[0] == "True")
    assert {kind: (status, reason) for kind, (status, reason, _) in conditions().items()} == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted"),
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain"),
    }
    assert "configmaps. has 1 resource instances" in conditions()["NamespaceContentRemaining"][2]
    assert "example.com/wait in 1 resource instances" in conditions()["NamespaceFinalizersRemaining"][2]
    api.send("PATCH", f"{held}/held", {"metadata": {"finalizers": None}}, type_="application/merge-patch+json")
    api.wait_gone("namespaces", name)


def test_emptied_labels_and_annotations_vanish(api: Api) -> None:
    api.create("configmaps", a_config_map("cm", labels={"a": "b"}, annotations={"c": "d"}))
    changes = {"metadata": {"labels": {"a": None}, "annotations": {"c": None}}}
    changed = api.patch("configmaps", "cm", changes)["metadata"]
    assert not {"labels", "annotations"} & changed.keys()
    assert (
        not {"labels", "finalizers"}
        & api.create("configmaps", {"metadata": {"name": "bare", "labels": {}, "finalizers": []}})["metadata"].keys()
    )


def test_a_namespace_is_patched_and_its_status_apart(api: Api) -> None:
    """[sig-api-machinery] Namespaces should patch a Namespace and apply changes to its status."""
    assert (
        api.patch("namespaces", api.namespace, {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"]["a"] == "b"
    )
    condition = {"type": "StatusPatched", "status": "True", "reason": "Test", "message": "by the test"}
    answer = api.patch("namespaces", api.namespace, {"status": {"conditions": [condition]}}, "status")
    assert answer["status"]["conditions"][0]["type"] == "StatusPatched"


def test_namespace_names_are_labels(api: Api) -> None:
    with refused(422, "Invalid", "metadata.name"):
        api.create("namespaces", {"metadata": {"name": "a.b"}})


@pytest.mark.every_store
def test_equal_names_in_two_namespaces_are_two_objects(api: Api) -> None:
    here = api.create("configmaps", a_config_map(api.namespace))
    there = api.send("POST", api.url("configmaps", namespace="default"), a_config_map(api.namespace)).json()
    assert here["metadata"]["uid"] != there["metadata"]["uid"]
    api.send("DELETE", api.url("configmaps", api.namespace, namespace="default"))
