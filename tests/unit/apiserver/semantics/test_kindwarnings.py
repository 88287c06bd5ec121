"""Warnings of built-in kinds: one accepted object for each, and its warning."""

from typing import Any

import pytest

from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.kinds.kinds import KindInfo

KINDS = {info.resource.kind: info for info in builtin_kinds() if info.resource.version != "v1beta1"}
CONTAINER: dict[str, Any] = {"name": "c", "image": "i"}


def warnings_of(kind: str, old: dict[str, Any] | None = None, **fields: Any) -> list[str]:
    metadata = {"name": fields.pop("name", "w"), **fields.pop("metadata", {})}
    return list(info_of(kind).strategy.warnings({"metadata": metadata, **fields}, old))


def info_of(kind: str) -> KindInfo:
    return KINDS[kind]


def a_spec(**fields: Any) -> dict[str, Any]:
    return {"containers": [CONTAINER], **fields}


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        (
            a_spec(nodeSelector={"beta.kubernetes.io/os": "linux"}),
            "spec.nodeSelector[beta.kubernetes.io/os]: deprecated",
        ),
        (a_spec(volumes=[{"name": "v", "gitRepo": {}}]), "spec.volumes[0].gitRepo: deprecated"),
        (a_spec(hostAliases=[{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]), 'spec.hostAliases[1].ip: duplicate ip "1.2.3.4"'),
        (a_spec(hostAliases=[{"ip": "01.2.3.4"}]), 'spec.hostAliases[0].ip: non-standard IP address "01.2.3.4"'),
        (a_spec(imagePullSecrets=[{}]), 'spec.imagePullSecrets[0].name: invalid empty name ""'),
        (a_spec(terminationGracePeriodSeconds=-1), "spec.terminationGracePeriodSeconds: must be >= 0"),
        (a_spec(dnsConfig={"nameservers": ["::ffff:1.2.3.4"]}), "spec.dnsConfig.nameservers[0]: non-standard IP"),
        (
            a_spec(topologySpreadConstraints=[{"topologyKey": "zone"}]),
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector",
        ),
        (
            a_spec(containers=[{**CONTAINER, "resources": {"limits": {"memory": "1500m"}}}]),
            'spec.containers[0].resources.limits[memory]: fractional byte value "1500m"',
        ),
        (
            a_spec(containers=[{**CONTAINER, "env": [{"name": "A"}, {"name": "A", "value": "x"}]}]),
            'spec.containers[0].env[1]: hides previous definition of "A"',
        ),
        (
            a_spec(containers=[{**CONTAINER, "ports": [{"containerPort": 1}, {"containerPort": 1, "hostPort": 2}]}]),
            "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
        ),
        (
            a_spec(volumes=[{"name": "v", "configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/b"}]}}]),
            'volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"',
        ),
        (
            a_spec(volumes=[{"name": "v", "projected": {"sources": [{}]}}]),
            'volume "v" (Projected) has no sources provided',
        ),
    ],
)
def test_pods_and_templates_have_the_same_warnings(spec: dict[str, Any], start: str) -> None:
    (found,) = warnings_of("Pod", spec=spec)
    assert found.startswith(start)
    (found,) = warnings_of("Deployment", spec={"template": {"spec": spec}})
    assert found.startswith(start.replace("spec.", "spec.template.spec."))


def test_a_variable_may_extend_its_own_value() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A):2"}]
    assert warnings_of("Pod", spec=a_spec(containers=[{**CONTAINER, "env": env}])) == []


def test_updates_warn_when_the_spec_changes_only() -> None:
    template = {"spec": a_spec(terminationGracePeriodSeconds=-1)}
    old = {"metadata": {"name": "w", "generation": 1}}
    for generation, count in ((1, 0), (2, 1)):
        metadata = {"generation": generation}
        assert len(warnings_of("Deployment", old, metadata=metadata, spec={"template": template})) == count
    assert warnings_of("Pod", old, spec=template["spec"]) == []


@pytest.mark.parametrize(
    ("kind", "fields", "start"),
    [
        ("Pod", {"name": "a.b", "spec": a_spec()}, "metadata.name: this is used in the Pod's hostname"),
        ("Service", {"spec": {"externalIPs": ["1.2.3.4"]}}, "spec.externalIPs is deprecated"),
        ("Service", {"spec": {"trafficDistribution": "PreferClose"}}, 'spec.trafficDistribution: "PreferClose"'),
        ("Service", {"spec": {"loadBalancerIP": "2001:DB8::1"}}, "spec.loadBalancerIP: IPv6 address"),
        (
            "Service",
            {"spec": {"loadBalancerSourceRanges": ["10.0.0.1/8"]}},
            "spec.loadBalancerSourceRanges[0]: CIDR value",
        ),
        ("EndpointSlice", {"addressType": "FQDN"}, "spec.addressType: FQDN endpoints are deprecated"),
        ("Ingress", {"metadata": {"annotations": {"kubernetes.io/ingress.class": "n"}}}, "annotation "),
        (
            "NetworkPolicy",
            {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]}},
            "spec.egress[0].to[0]",
        ),
        (
            "PersistentVolume",
            {"spec": {"persistentVolumeReclaimPolicy": "Recycle"}},
            "spec.persistentVolumeReclaimPolicy",
        ),
        ("PersistentVolumeClaim", {"spec": {"resources": {"requests": {"storage": "1m"}}}}, "spec.resources.requests"),
        (
            "StorageClass",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/os"}]}]},
            "allowed",
        ),
        ("CSIStorageCapacity", {"nodeTopology": {"matchLabels": {"beta.kubernetes.io/os": "x"}}}, "nodeTopology"),
        ("CSIDriver", {"spec": {"tokenRequests": [{"audience": "a"}]}}, "spec.serviceAccountTokenInSecrets is unset"),
        ("RuntimeClass", {"scheduling": {"nodeSelector": {"beta.kubernetes.io/os": "x"}}}, "scheduling.nodeSelector"),
        ("Node", {"spec": {"externalID": "x"}}, "spec.externalID: this field is deprecated"),
        (
            "ResourceQuota",
            {"spec": {"hard": {"requests.cpu": "2", "limits.cpu": "1"}}},
            "ResourceQuota requests.cpu (2)",
        ),
        (
            "ServiceAccount",
            {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}},
            "metadata.annotations[kubernetes.io/enforce-mountable-secrets]",
        ),
        (
            "Job",
            {"spec": {"completionMode": "Indexed", "completions": 200_000, "parallelism": 20_000}},
            "spec: In Indexed Jobs",
        ),
        ("StatefulSet", {"spec": {"revisionHistoryLimit": -1}}, "spec.revisionHistoryLimit: a negative value"),
    ],
)
def test_a_kind_has_its_warning(kind: str, fields: dict[str, Any], start: str) -> None:
    (found,) = warnings_of(kind, **fields)
    assert found.startswith(start)


def test_every_request_of_a_deprecated_kind_has_a_warning() -> None:
    assert info_of("Endpoints").warning.startswith("v1 Endpoints is deprecated in v1.33+")
