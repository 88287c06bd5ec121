"""Bounds of fields that the schemas do not have: kube-apiserver checks them in code."""

from typing import Any

import pytest
from tests.conformance.apiserver.objects import SELECTOR, TEMPLATE, a_deployment, a_pod, a_service, a_spec
from tests.support.rest import APPLY, Api, Object, refused

APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/main"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/main"
MIRROR, COST = "kubernetes.io/config.mirror", "controller.kubernetes.io/pod-deletion-cost"
MAPPED, ZEROS = "::ffff:1.2.3.4", "01.2.3.4"
CONTAINER = {"name": "main", "image": "nginx:1.25"}
SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
CLUSTER_SCOPED = {
    "networking.k8s.io/v1/ingressclasses",
    "node.k8s.io/v1/runtimeclasses",
    *(f"storage.k8s.io/v1/{plural}" for plural in ("storageclasses", "csidrivers", "csinodes", "volumeattachments")),
}


def pod(**annotations: str) -> Object:
    return {**a_pod(), "metadata": {"name": "p", "annotations": annotations}}


def annotated(key: str, value: str, **spec: Any) -> Object:
    return {**a_pod(**spec), "metadata": {"name": "p", "annotations": {key: value}}}


def container(**fields: Any) -> Object:
    return a_pod(containers=[{**CONTAINER, **fields}])


def of(**fields: Any) -> Object:
    return {"metadata": {"name": "x"}, **fields}


def template(**spec: Any) -> Object:
    return a_deployment(template={**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}, selector=SELECTOR)


POLICY = of(spec={"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]})


def ingress(**spec: Any) -> Object:
    return of(spec={"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}, **spec})


@pytest.mark.parametrize(
    ("plural", "obj", "field"),
    [
        ("pods", annotated(COST, "much"), f"metadata.annotations[{COST}]"),
        ("pods", annotated(COST, "+1"), f"metadata.annotations[{COST}]"),
        ("pods", annotated(COST, "2147483648"), f"metadata.annotations[{COST}]"),
        ("pods", annotated(MIRROR, "x"), f"metadata.annotations[{MIRROR}]"),
        ("pods", annotated(APP_ARMOR, "wrong"), f"metadata.annotations[{APP_ARMOR}]"),
        ("pods", annotated(f"{APP_ARMOR}2", "unconfined"), f"metadata.annotations[{APP_ARMOR}2]"),
        (
            "pods",
            annotated(
                APP_ARMOR,
                "unconfined",
                containers=[{**CONTAINER, "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}],
            ),
            "spec.containers[0].securityContext.appArmorProfile.type",
        ),
        ("pods", a_pod(hostAliases=[{"ip": ZEROS, "hostnames": ["a"]}]), "spec.hostAliases[0].ip"),
        ("pods", a_pod(hostAliases=[{"ip": MAPPED, "hostnames": ["a"]}]), "spec.hostAliases[0].ip"),
        ("pods", a_pod(dnsConfig={"nameservers": [MAPPED]}), "spec.dnsConfig.nameservers[0]"),
        ("pods", a_pod(resourceClaims=[{"name": "a"}]), "spec.resourceClaims[0]"),
        ("pods", a_pod(os={"name": "windows"}, securityContext={"runAsUser": 1}), "spec.securityContext.runAsUser"),
        ("pods", a_pod(os={"name": "windows"}, hostPID=True), "spec.hostPID"),
        ("pods", a_pod(os={"name": "windows"}, hostIPC=True), "spec.hostIPC"),
        ("pods", a_pod(os={"name": "windows"}, hostUsers=True), "spec.hostUsers"),
        ("pods", a_pod(os={"name": "windows"}, shareProcessNamespace=True), "spec.shareProcessNamespace"),
        (
            "pods",
            a_pod(os={"name": "linux"}, securityContext={"windowsOptions": {"runAsUserName": "u"}}),
            "spec.securityContext.windowsOptions",
        ),
        ("pods", a_pod(nodeName="n", schedulingGates=[{"name": "a"}]), "spec.nodeName"),
        ("pods", a_pod(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}), "spec.resources.requests"),
        (
            "pods",
            {
                **container(resources={"requests": {"cpu": "1"}}),
                "spec": {
                    **container(resources={"requests": {"cpu": "1"}})["spec"],
                    "resources": {"requests": {"cpu": "500m"}},
                },
            },
            "spec.resources.requests[cpu]",
        ),
        (
            "pods",
            container(resources={"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}}),
            "spec.containers[0].resources.limits[hugepages-2Mi]",
        ),
        ("pods", container(resources={"limits": {"hugepages-2Mi": "2Mi"}}), "spec.containers[0].resources"),
        (
            "pods",
            {**container(ports=[{"containerPort": 80, "hostPort": 81}]), "spec": {
                **container(ports=[{"containerPort": 80, "hostPort": 81}])["spec"], "hostNetwork": True}},
            "spec.containers[0].ports[0].hostPort",
        ),
        ("pods", container(image=" i"), "spec.containers[0].image"),
        (
            "pods",
            a_pod(topologySpreadConstraints=[{**SPREAD, "labelSelector": {"matchLabels": {"app": "p"}},
                                              "matchLabelKeys": ["app"]}]),
            "spec.topologySpreadConstraints[0][0]",
        ),
        ("deployments", template(hostAliases=[{"ip": ZEROS}]), "spec.template.spec.hostAliases[0].ip"),
        (
            "daemonsets",
            of(spec={**a_spec("daemonsets"), "updateStrategy": {"type": "RollingUpdate",
                     "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}),
            "spec.updateStrategy.rollingUpdate.maxSurge",
        ),
        ("statefulsets", of(spec={**a_spec("statefulsets"), "ordinals": {"start": -1}}), "spec.ordinals.start"),
        ("statefulsets", of(spec={**a_spec("statefulsets"), "serviceName": "No!"}), "spec.serviceName"),
        ("jobs", of(spec={**a_spec("jobs"), "managedBy": "no"}), "spec.managedBy"),
        (
            "jobs",
            of(spec={**a_spec("jobs"), "completions": 2, "completionMode": "Indexed",
                     "successPolicy": {"rules": [{"succeededIndexes": "1-0"}]}}),
            "spec.successPolicy.rules[0].succeededIndexes",
        ),
        ("poddisruptionbudgets", of(spec={**a_spec("poddisruptionbudgets"), "unhealthyPodEvictionPolicy": "No"}),
         "spec.unhealthyPodEvictionPolicy"),
        ("resourcequotas", of(spec={"hard": {"pods": "500m"}}), "spec.hard[pods]"),
        ("resourcequotas", of(spec={"hard": {"count/secrets": "1500m"}}), "spec.hard[count/secrets]"),
        ("limitranges", of(spec={"limits": [{"type": "No such!"}]}), "spec.limits[0].type"),
        ("services", a_service(externalIPs=["no"]), "spec.externalIPs[0]"),
        ("services", a_service(externalIPs=[ZEROS]), "spec.externalIPs[0]"),
        ("services", a_service(internalTrafficPolicy="No"), "spec.internalTrafficPolicy"),
        ("services", a_service(externalTrafficPolicy="Local"), "spec.externalTrafficPolicy"),
        ("services", a_service(trafficDistribution="No"), "spec.trafficDistribution"),
        ("services", a_service(ports=[{"port": 80, "nodePort": 30001}]), "spec.ports[0].nodePort"),
        ("services", a_service(ports=[{"port": 80, "appProtocol": "No such!"}]), "spec.ports[0].appProtocol"),
        ("services", a_service(allocateLoadBalancerNodePorts=True), "spec.allocateLoadBalancerNodePorts"),
        (
            "services",
            a_service(type="LoadBalancer", loadBalancerSourceRanges=["10.0.0.1/8"]),
            "spec.LoadBalancerSourceRanges[0]",
        ),
        ("services", a_service(type="LoadBalancer", clusterIP="None"), "spec.clusterIPs[0]"),
        (
            "services",
            a_service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        ),
        ("ingresses", ingress(tls=[{"hosts": ["No such!"]}]), "spec.tls[0].hosts[0]"),
        ("ingresses", ingress(tls=[{"secretName": "No!"}]), "spec.tls[0].secretName"),
        ("ingresses", ingress(ingressClassName="No!"), "spec.ingressClassName"),
        ("ingresses", ingress(defaultBackend={}), "spec.defaultBackend"),
        ("ingresses", ingress(defaultBackend={"resource": {"kind": "A"}}), "spec.defaultBackend.resource.name"),
        ("networkpolicies", POLICY, "spec.ingress[0].from[0].ipBlock.cidr"),
        ("networking.k8s.io/v1/ingressclasses", of(spec={"controller": "a.io/b", "parameters": {"kind": "A", "name": "b", "scope": "No"}}),
         "spec.parameters.scope"),
        ("networking.k8s.io/v1/ingressclasses", of(spec={"controller": "a.io/b", "parameters": {"kind": "A", "name": "b",
         "scope": "Namespace"}}), "spec.parameters.namespace"),
        ("secrets", of(type="kubernetes.io/basic-auth"), "data[username]"),
        ("secrets", of(type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "no"}),
         "data[.dockerconfigjson]"),
        ("controllerrevisions", of(revision=-1, data={}), "revision"),
        ("controllerrevisions", of(revision=1), "data"),
        ("storage.k8s.io/v1/storageclasses", of(provisioner="a.io/b", reclaimPolicy="No"), "reclaimPolicy"),
        ("storage.k8s.io/v1/storageclasses", of(provisioner="a.io/b", allowedTopologies=[{}]),
         "allowedTopologies[0].matchLabelExpressions"),
        ("storage.k8s.io/v1/csidrivers", of(spec={"fsGroupPolicy": "No"}), "spec.fsGroupPolicy"),
        ("storage.k8s.io/v1/csidrivers", of(spec={"tokenRequests": [{"audience": "a"}, {"audience": "a"}]}),
         "spec.tokenRequests[1].audience"),
        ("storage.k8s.io/v1/csinodes", of(spec={"drivers": [{"name": "a"}]}), "spec.drivers[0].nodeID"),
        ("storage.k8s.io/v1/csistoragecapacities", of(storageClassName="No!"), "storageClassName"),
        ("storage.k8s.io/v1/volumeattachments", of(spec={"attacher": "a", "nodeName": "n", "source": {}}), "spec.source"),
        ("node.k8s.io/v1/runtimeclasses", of(handler="a", scheduling={"tolerations": [{"operator": "No"}]}),
         "scheduling.tolerations[0].operator"),
        ("node.k8s.io/v1/runtimeclasses", of(handler="a", overhead={"podFixed": {"cpu": "-1"}}), "overhead.limits[cpu]"),
        ("priorityclasses", of(value=1, preemptionPolicy="No"), "preemptionPolicy"),
        ("clusterroles", of(aggregationRule={}), "aggregationRule.clusterRoleSelectors"),
        ("clusterrolebindings", of(roleRef={"apiGroup": "no", "kind": "ClusterRole", "name": "x"}), "roleRef.apiGroup"),
        ("nodes", of(spec={"podCIDRs": ["10.0.0.1/8"]}), "spec.podCIDRs[0]"),
        ("nodes", of(status={"capacity": {"pods": "500m"}}), "status.capacity.pods"),
    ],
)  # fmt: skip
def test_the_field_is_refused(api: Api, plural: str, obj: Object, field: str) -> None:
    with refused(422, "Invalid") as caught:
        (api.within("") if plural in CLUSTER_SCOPED else api).create(plural, obj, dryRun="All")
    assert field in {cause["field"] for cause in caught.value.status["details"]["causes"]}, caught.value


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({}, {APP_ARMOR: "unconfined"}, "may not add AppArmor annotations"),
        ({APP_ARMOR: "unconfined"}, {APP_ARMOR: "runtime/default"}, "may not remove or update AppArmor annotations"),
        ({APP_ARMOR: "unconfined"}, {APP_ARMOR: None}, "may not remove or update AppArmor annotations"),
        ({}, {MIRROR: "x"}, "may not add mirror pod annotation"),
        ({}, {COST: "much"}, "must be a 32bit integer"),
        ({}, {SECCOMP: "wrong"}, "must be a valid seccomp profile"),
    ],
)
def test_an_update_of_a_pod_changes_no_profile_in_annotations(
    api: Api, before: dict[str, str], after: dict[str, Any], text: str
) -> None:
    """Attack: who may only patch pods takes the profile from a container that restarts."""
    api.create("pods", pod(**before))
    with refused(422, "Invalid", text):
        api.patch("pods", "p", {"metadata": {"annotations": after}})
    api.patch("pods", "p", {"metadata": {"annotations": {"free": "to change", COST: "-5"}}})
    api.delete("pods", "p", {"gracePeriodSeconds": 0})


def test_keys_of_labels_become_requirements_of_the_selectors(api: Api) -> None:
    selector = {"matchLabels": {"app": "p"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["hash"], "mismatchLabelKeys": ["team"]}
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spread = {**SPREAD, "labelSelector": selector, "matchLabelKeys": ["hash", "absent"]}
    obj = a_pod(affinity={"podAntiAffinity": anti}, topologySpreadConstraints=[spread])
    obj["metadata"]["labels"] |= {"hash": "h1", "team": "red"}
    spec = api.create("pods", obj, dryRun="All")["spec"]
    (found,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    wanted = {"key": "hash", "operator": "In", "values": ["h1"]}
    other = {"key": "team", "operator": "NotIn", "values": ["red"]}
    assert found["labelSelector"] == {**selector, "matchExpressions": [wanted, other]}
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {**selector, "matchExpressions": [wanted]}


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"uid": "11111111-2222-3333-4444-555555555555"}, "metadata.uid"),
        ({"deletionTimestamp": "2020-01-01T00:00:00Z"}, "metadata.deletionTimestamp"),
        ({"deletionGracePeriodSeconds": 5}, "metadata.deletionGracePeriodSeconds"),
        ({"generateName": "No such!"}, "metadata.generateName"),
    ],
)
def test_a_patch_changes_no_metadata_of_the_server(api: Api, metadata: Object, field: str) -> None:
    api.create("configmaps", of())
    for type_ in ({}, {"type_": APPLY, "fieldManager": "one"}):
        head = {"apiVersion": "v1", "kind": "ConfigMap"} if type_ else {}
        with refused(422, "Invalid") as caught:
            api.patch("configmaps", "x", {**head, "metadata": {"name": "x", **metadata}}, **type_)
        assert {cause["field"] for cause in caught.value.status["details"]["causes"]} == {field}


def test_the_propagation_of_a_deletion_is_named_or_absent(api: Api) -> None:
    api.create("configmaps", of())
    with refused(422, "Invalid", "propagationPolicy"):
        api.delete("configmaps", "x", {"propagationPolicy": ""})
