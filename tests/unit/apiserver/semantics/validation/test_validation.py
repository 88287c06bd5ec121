"""Validation and defaults of built-in kinds, with the error texts of Kubernetes."""

from typing import Any

import pytest

from federation.apimachinery import finalizers
from federation.apiserver.semantics.defaults import otherdefaults, workloaddefaults
from federation.apiserver.semantics.strategies import (
    admission,
    autoscaling,
    batch,
    config,
    core,
    crds,
    events,
    network,
    pods,
    policy,
    rbac,
    storage,
)
from federation.apiserver.semantics.strategies import workloads as strategies
from federation.apiserver.semantics.strategies.base import Strategy
from federation.apiserver.semantics.validation.schedulevalidation import schedule_problem

Object = dict[str, Any]


def a_template(**spec: Any) -> Object:
    return {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }


def a_workload(**spec: Any) -> Object:
    return {
        "metadata": {"name": "w"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": a_template(), **spec},
    }


def errors_of(strategy: Strategy, obj: Object) -> list[str]:
    obj.setdefault("metadata", {"name": "n"})
    strategy.default(obj)
    return [f"{cause['field']}: {cause['message']}" for cause in strategy.validate(obj)]


DEPLOYMENT = strategies.DeploymentStrategy()
POD = pods.PodStrategy()


def a_container(**fields: Any) -> Object:
    return {"spec": {"containers": [{"name": "c", "image": "i:1", **fields}]}}


def test_valid_deployment_has_no_causes() -> None:
    assert errors_of(DEPLOYMENT, a_workload()) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": -1}, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        ({"selector": None}, "spec.selector: Required value"),
        ({"selector": {}}, "spec.selector: Invalid value: {}: empty selector is invalid for deployment"),
        (
            {"selector": {"matchLabels": {"a": "other"}}},
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}},
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}},
            (
                "spec.selector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or"
                " 'DoesNotExist'"
            ),
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            'spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator',
        ),
        (
            {"strategy": {"type": "Sideways"}},
            'spec.strategy: Unsupported value: "Sideways": supported values: "Recreate", "RollingUpdate"',
        ),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0',
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": "120%"}}},
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "120%": must not be greater than 100%',
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": "a lot"}}},
            (
                'spec.strategy.rollingUpdate.maxSurge: Invalid value: "a lot": a valid percent string must be a numeric string'
                " followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            ),
        ),
        (
            {"minReadySeconds": 700},
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
        ),
        (
            {"template": a_template(restartPolicy="Never")},
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
        ({"template": {"metadata": {"labels": {"a": "b"}}}}, "spec.template.spec.containers: Required value"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value)[:60],
)
def test_invalid_deployment_is_reported(spec: Object, expected: str) -> None:
    first, *consequences = errors_of(DEPLOYMENT, a_workload(**spec))
    assert first == expected
    # A selector that is absent or invalid matches no template.
    assert all(text.endswith(("template `labels`", "invalid label selector")) for text in consequences)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_container(image=""), "spec.containers[0].image: Required value"),
        (a_container(name=""), "spec.containers[0].name: Required value"),
        (
            a_container(image=" i"),
            'spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace',
        ),
        (
            {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        (
            a_container(ports=[{"containerPort": 70000}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (a_container(ports=[{}]), "spec.containers[0].ports[0].containerPort: Required value"),
        (
            a_container(ports=[{"containerPort": 1, "protocol": "ICMP"}]),
            'spec.containers[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            a_container(ports=[{"containerPort": 1, "name": "x"}, {"containerPort": 2, "name": "x"}]),
            'spec.containers[0].ports[1].name: Duplicate value: "x"',
        ),
        (
            a_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            a_container(resources={"requests": {"memory": "-1"}}),
            'spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            a_container(imagePullPolicy="Sometimes"),
            (
                'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always",'
                ' "IfNotPresent", "Never"'
            ),
        ),
        (
            a_container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (a_container(env=[{"value": "x"}]), "spec.containers[0].env[0].name: Required value"),
        (
            a_container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
            'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        ),
        (
            a_container(livenessProbe={}),
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
        (
            a_container(livenessProbe={"exec": {"command": ["true"]}, "successThreshold": 2}),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            a_container(readinessProbe={"exec": {"command": ["true"]}, "tcpSocket": {}}),
            "spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {"spec": {**a_container()["spec"], "restartPolicy": "Maybe"}},
            'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "Never", "OnFailure"',
        ),
        (
            {"spec": {**a_container()["spec"], "volumes": [{"name": "v"}, {"name": "v"}]}},
            'spec.volumes[1].name: Duplicate value: "v"',
        ),
        (
            {"spec": {**a_container()["spec"], "volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]}},
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"spec": {**a_container()["spec"], "tolerations": [{"operator": "Equal", "value": "x"}]}},
            (
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means'
                ' "match all values and all keys"'
            ),
        ),
        (
            {
                "spec": {
                    **a_container()["spec"],
                    "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 1}],
                }
            },
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            {
                "spec": {
                    **a_container()["spec"],
                    "topologySpreadConstraints": [
                        {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
                    ],
                }
            },
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
def test_invalid_pod_is_reported(pod: Object, expected: str) -> None:
    assert errors_of(POD, pod) == [expected]


A_JOB_SELECTOR: Object = {"matchLabels": {"a": "b"}}
A_JOB_TEMPLATE = a_template(restartPolicy="Never")


@pytest.mark.parametrize(
    ("strategy", "obj", "expected"),
    [
        (
            batch.JobStrategy(),
            {"spec": {"selector": A_JOB_SELECTOR, "template": a_template()}},
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        (
            batch.JobStrategy(),
            {"spec": {"selector": A_JOB_SELECTOR, "template": A_JOB_TEMPLATE, "parallelism": -1}},
            "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            batch.JobStrategy(),
            {
                "spec": {
                    "selector": A_JOB_SELECTOR,
                    "template": A_JOB_TEMPLATE,
                    "completionMode": "Indexed",
                    "parallelism": 1,
                }
            },
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            batch.CronJobStrategy(),
            {"spec": {"jobTemplate": {"spec": {"template": A_JOB_TEMPLATE}}}},
            "spec.schedule: Required value",
        ),
        (
            batch.CronJobStrategy(),
            {"spec": {"schedule": "* * *", "jobTemplate": {"spec": {"template": A_JOB_TEMPLATE}}}},
            "spec.schedule: Invalid value: \"* * *\": expected exactly 5 fields, found 3: ['*', '*', '*']",
        ),
        (
            batch.CronJobStrategy(),
            {"spec": {"schedule": "61 * * * *", "jobTemplate": {"spec": {"template": A_JOB_TEMPLATE}}}},
            'spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61',
        ),
        (
            network.ServiceStrategy(),
            {"spec": {}},
            "spec.ports: Required value",
        ),
        (
            network.ServiceStrategy(),
            {"spec": {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}},
            "spec.ports[0].name: Required value",
        ),
        (
            network.ServiceStrategy(),
            {"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}},
            'spec.ports[1]: Duplicate value: {"name":"b","protocol":"TCP","port":1}',
        ),
        (
            network.ServiceStrategy(),
            {"spec": {"type": "ExternalName"}},
            "spec.externalName: Required value",
        ),
        (
            network.IngressStrategy(),
            {"spec": {}},
            "spec: Invalid value: {}: either `defaultBackend` or `rules` must be specified",
        ),
        (
            network.IngressStrategy(),
            {
                "spec": {
                    "rules": [
                        {
                            "http": {
                                "paths": [{"path": "/", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]
                            }
                        }
                    ]
                }
            },
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
        ),
        (
            network.NetworkPolicyStrategy(),
            {"spec": {"policyTypes": ["Sideways"]}},
            'spec.policyTypes[0]: Unsupported value: "Sideways": supported values: "Egress", "Ingress"',
        ),
        (
            autoscaling.HorizontalPodAutoscalerStrategy(),
            {
                "spec": {
                    "minReplicas": 5,
                    "maxReplicas": 2,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                }
            },
            "spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`",
        ),
        (
            autoscaling.HorizontalPodAutoscalerStrategy(),
            {
                "spec": {
                    "minReplicas": -1,
                    "maxReplicas": 2,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                }
            },
            "spec.minReplicas: Invalid value: -1: must be greater than or equal to 1",
        ),
        (
            autoscaling.HorizontalPodAutoscalerStrategy(),
            {"spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment"}}},
            "spec.scaleTargetRef.name: Required value",
        ),
        (
            policy.PodDisruptionBudgetStrategy(),
            {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
            'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be both set',
        ),
        (
            policy.PodDisruptionBudgetStrategy(),
            {"spec": {"minAvailable": "101%"}},
            'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            policy.PriorityClassStrategy(),
            {"value": 2_000_000_000},
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            admission.WebhookConfigurationStrategy(),
            {
                "kind": "ValidatingWebhookConfiguration",
                "webhooks": [
                    {
                        "name": "short",
                        "admissionReviewVersions": ["v1"],
                        "sideEffects": "None",
                        "clientConfig": {"url": "https://x"},
                    }
                ],
            },
            'webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots',
        ),
        (
            rbac.RoleStrategy(),
            {"rules": [{"apiGroups": [""], "resources": ["pods"]}]},
            "rules[0].verbs: Required value: verbs must contain at least one value",
        ),
        (
            rbac.RoleBindingStrategy(),
            {"kind": "ClusterRoleBinding", "roleRef": {"kind": "Role", "name": "r"}},
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        ),
        (
            rbac.RoleBindingStrategy(),
            {
                "kind": "ClusterRoleBinding",
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "s"}],
            },
            "subjects[0].namespace: Required value",
        ),
        (
            storage.PersistentVolumeClaimStrategy(),
            {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
            "spec.accessModes: Required value: at least 1 access mode is required",
        ),
        (
            storage.PersistentVolumeClaimStrategy(),
            {"spec": {"accessModes": ["ReadWriteOnce"]}},
            "spec.resources[storage]: Required value",
        ),
        (
            storage.PersistentVolumeStrategy(),
            {"spec": {"accessModes": ["Anyhow"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}},
            (
                'spec.accessModes: Unsupported value: "Anyhow": supported values: "ReadOnlyMany", "ReadWriteMany",'
                ' "ReadWriteOnce", "ReadWriteOncePod"'
            ),
        ),
        (storage.StorageClassStrategy(), {}, "provisioner: Required value"),
        (
            config.ImmutableDataStrategy(),
            {"data": {"a b": "x"}},
            (
                "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                " (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
            ),
        ),
        (
            config.SecretStrategy(),
            {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}},
            "data[tls.key]: Required value",
        ),
        (
            config.SecretStrategy(),
            {"data": {"a": "not base64!"}},
            'data[a]: Invalid value: "<redacted>": illegal base64 data',
        ),
        (
            events.EventStrategy(),
            {"metadata": {"name": "e", "namespace": "a"}, "involvedObject": {"namespace": "b"}},
            'involvedObject.namespace: Invalid value: "b": does not match event.namespace',
        ),
        (
            config.LeaseStrategy(),
            {"spec": {"leaseDurationSeconds": 0}},
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
def test_invalid_object_of_other_kinds_is_reported(strategy: Strategy, obj: Object, expected: str) -> None:
    assert errors_of(strategy, obj) == [expected]


@pytest.mark.parametrize(
    "schedule",
    [
        *("* * * * *", "*/5 0-4 1,15 * 1-5", "@daily", "@every 1h", "@every 1h30m", "0 0 * JAN MON", "0 12 ? * 1"),
        # What robfig/cron accepts, although it says nothing or too much.
        *("*/70 * * * *", "+5 * * * *", "05 * * * *", ", * * * *", "1,,2 * * * *", "*-5 * * * *", "5/10 * * * *"),
        *(" 0  0 31 2 * ", "10-30/5 * * * mon-fri", "0 0 1 jan-mar *", "*/1000000000 * * * *"),
    ],
)
def test_valid_schedules_are_accepted(schedule: str) -> None:
    obj = {
        "metadata": {"name": "c"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": A_JOB_TEMPLATE}}},
    }
    assert errors_of(batch.CronJobStrategy(), obj) == []


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("0 0 * * 7", "end of range (7) above maximum (6): 7"),
        ("0 0 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("0 0 L * *", "failed to parse int from L: 'L' is not a number"),
        ("JAN * * * *", "failed to parse int from JAN: 'JAN' is not a number"),
        ("0 0 * * mon#1", "failed to parse int from mon#1: 'mon#1' is not a number"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/5/5 * * * *", "too many slashes: */5/5"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("*/x * * * *", "failed to parse int from */x: 'x' is not a number"),
        ("1/-5 * * * *", "negative number (-5) not allowed: 1/-5"),
        ("* * * * * *", "expected exactly 5 fields, found 6: ['*', '*', '*', '*', '*', '*']"),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("99999999999 * * * *", "failed to parse int from 99999999999: value out of range"),
        ("@every day", "failed to parse duration @every day: 'day' is not a duration such as 1m30s or 250ms"),
    ],
)
def test_schedules_that_no_member_can_parse_are_refused(schedule: str, problem: str) -> None:
    assert schedule_problem(schedule) == problem


@pytest.mark.parametrize(
    "default",
    [
        workloaddefaults.default_deployment,
        workloaddefaults.default_replica_set,
        workloaddefaults.default_stateful_set,
        workloaddefaults.default_daemon_set,
        workloaddefaults.default_job,
    ],
)
def test_workload_defaults_are_idempotent(default: Any) -> None:
    once = a_workload()
    default(once)
    import copy

    twice = copy.deepcopy(once)
    default(twice)
    assert once == twice


def test_pods_of_a_stateful_set_may_mount_its_claims() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "logs", "mountPath": "/logs"}]
    template = a_template(containers=[{"name": "c", "image": "i:1", "volumeMounts": mounts}])
    storage = {"requests": {"storage": "1Gi"}}
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": storage}}]
    obj = a_workload(template=template, serviceName="db", volumeClaimTemplates=claims)
    assert errors_of(strategies.StatefulSetStrategy(), obj) == [
        'spec.template.spec.containers[0].volumeMounts[1].name: Not found: "logs"'
    ]


def test_autoscaler_without_metrics_defaults_to_cpu() -> None:
    obj: Object = {"spec": {"maxReplicas": 3}}
    otherdefaults.default_autoscaler(obj)
    assert obj["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
    assert obj["spec"]["minReplicas"] == 1


def test_network_policy_with_egress_rules_has_both_types() -> None:
    obj: Object = {"spec": {"egress": [{}]}}
    otherdefaults.default_network_policy(obj)
    assert obj["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_subjects_of_a_binding_default_to_the_rbac_group() -> None:
    obj: Object = {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}
    otherdefaults.default_role_binding(obj)
    assert obj["roleRef"]["apiGroup"] == obj["subjects"][0]["apiGroup"] == "rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"resources": {"requests": {"cpu": "1"}}}], "Burstable"),
        (
            [{"resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}}],
            "Guaranteed",
        ),
        (
            [{"resources": {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}}, {}],
            "Burstable",
        ),
    ],
    ids=["nothing", "a request", "requests equal limits", "one of two"],
)
def test_qos_class(containers: list[Object], expected: str) -> None:
    assert pods.qos_class({"containers": containers}) == expected


def test_system_namespaces_refuse_deletion() -> None:
    assert core.NamespaceStrategy().deletion_refusal({"metadata": {"name": "kube-system"}})
    assert not core.NamespaceStrategy().deletion_refusal({"metadata": {"name": "team"}})


def test_deleted_crd_gets_the_cleanup_finalizer_once() -> None:
    obj: Object = {"metadata": {"name": "d", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    for _ in range(2):
        crds.CustomResourceDefinitionStrategy().prepare_deletion(obj)
        assert obj["metadata"]["finalizers"] == [finalizers.DEFINITION_CLEANUP]
    assert [found["type"] for found in obj["status"]["conditions"]] == ["Terminating"]
