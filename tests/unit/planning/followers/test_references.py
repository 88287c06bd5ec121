"""References in pod specs and in the annotation `followers`."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.planning.followers.references import FollowersError, Reference, listed_followers, pod_references


def _secret(name: str) -> Reference:
    return Reference("", "Secret", name)


POD: dict[str, Any] = {
    "serviceAccountName": "runner",
    "imagePullSecrets": [{"name": "pull"}],
    "initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "init", "key": "k"}}}]}],
    "containers": [
        {
            "env": [
                {"name": "A", "value": "plain"},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}},
                {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "envFrom": [{"configMapRef": {"name": "env-from"}}, {"prefix": "X_", "secretRef": {"name": "env-from"}}],
        }
    ],
    "ephemeralContainers": [{"envFrom": [{"secretRef": {"name": "debug"}}]}],
    "volumes": [
        {"name": "1", "secret": {"secretName": "volume"}},
        {"name": "2", "configMap": {"name": "volume"}},
        {"name": "3", "persistentVolumeClaim": {"claimName": "data"}},
        {
            "name": "4",
            "projected": {
                "sources": [
                    {"secret": {"name": "projected"}},
                    {"configMap": {"name": "projected"}},
                    {"serviceAccountToken": {"path": "token"}},
                ]
            },
        },
        {"name": "5", "azureFile": {"secretName": "azure", "shareName": "s"}},
        *(
            {"name": kind, kind: {"secretRef": {"name": kind}}}
            for kind in ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
        ),
        {"name": "6", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
        {"name": "7", "ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "made-with-the-pod"}}}},
        {"name": "8", "emptyDir": {}},
    ],
}


def test_every_place_of_a_pod_spec_that_names_an_object_counts() -> None:
    secrets = ("pull", "init", "env-from", "debug", "volume", "projected", "azure", "csi")
    drivers = ("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos")
    assert pod_references(POD) == {
        Reference("", "ServiceAccount", "runner"),
        Reference("", "PersistentVolumeClaim", "data"),
        *(Reference("", "ConfigMap", name) for name in ("env", "env-from", "volume", "projected")),
        *map(_secret, (*secrets, *drivers)),
    }


@pytest.mark.parametrize(
    "spec",
    [None, [], {"containers": "x"}, {"volumes": [None, {"secret": None}, {"secret": {"secretName": 7}}]}],
    ids=repr,
)
def test_a_malformed_pod_spec_refers_to_nothing(spec: Any) -> None:
    assert pod_references(spec) == set()


def test_the_annotation_lists_followers() -> None:
    listed = [{"kind": "Service", "name": "web"}, {"group": "networking.k8s.io", "kind": "Ingress", "name": "web"}]
    assert listed_followers({names.FOLLOWERS: orjson.dumps(listed).decode()}) == {
        Reference("", "Service", "web"),
        Reference("networking.k8s.io", "Ingress", "web"),
    }


@pytest.mark.parametrize("annotations", [{}, {names.FOLLOWERS: ""}, {names.FOLLOWERS: "null"}, {names.FOLLOWERS: "[]"}])
def test_an_annotation_may_be_empty(annotations: dict[str, str]) -> None:
    assert listed_followers(annotations) == set()


def test_errors_of_the_annotation_include_a_remedy() -> None:
    with pytest.raises(FollowersError, match=r'followers: not JSON, .*; write a list such as \[\{"kind":"Service"'):
        listed_followers({names.FOLLOWERS: "[{"})


@pytest.mark.parametrize("text", ["{", '{"kind":"Service","name":"web"}', '[{"kind":"Service"}]', '["web"]'])
def test_an_annotation_that_lists_nothing_usable_is_refused_by_name(text: str) -> None:
    with pytest.raises(FollowersError, match=names.FOLLOWERS):
        listed_followers({names.FOLLOWERS: text})
