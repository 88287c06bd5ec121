"""The Helm chart, rendered by Helm's own library with every pair of its options; with all combinations at night."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import combinations, cycle, product
from typing import Any

import helm_python as helm
import pytest
import typer
import yaml
from helm_python import chart as helm_chart
from tests.support.vectors import ROOT
from tools import generate_monitoring

from federation import __version__
from federation.cli.main import app
from federation.planning.waves.metricsources import parse_sources
from federation.settings import Settings, from_environment

CHART = ROOT / "charts" / "federation"
STORES: Mapping[str, dict[str, Any]] = {
    "sqlite": {},
    "sqlite with a claim": {"sqlite": {"existingClaim": "mine"}},
    "postgresql": {"store": "postgresql", "postgresql": {"url": "postgresql://user:secret@db/federation"}},
    "postgresql with a Secret": {
        "store": "postgresql",
        "postgresql": {"existingSecret": {"name": "database", "key": "uri"}, "replicas": 3},
    },
    "one replica": {"store": "postgresql", "postgresql": {"url": "postgresql://db/federation", "replicas": 1}},
}
CERTIFICATES: Mapping[str, dict[str, Any]] = {
    "own": {"tls": {"names": ["fed.example.com", "203.0.113.7"]}},
    "certManager": {
        "tls": {"source": "certManager", "names": ["203.0.113.7"], "certManager": {"issuerRef": {"name": "company"}}}
    },
    "secret": {"tls": {"source": "secret", "secretName": "fed-tls"}},
    "public": {"tls": {"source": "secret", "secretName": "fed-tls", "hasCA": False}},
}
OPTIONS: tuple[dict[str, Any], ...] = (
    {
        "encryption": {"secretName": "encryption"},
        "audit": {"policy": {"rules": [{"level": "Metadata"}]}},
        "metricSources": {"sources": {"main": {"url": "https://prometheus.example"}}, "secretName": "prometheus"},
        "settings": {"oidc_issuer_url": "https://issuer.example", "store_bytes_max": 10_000_000_000},
    },
    {
        "serviceMonitor": {"enabled": True, "labels": {"team": "platform"}},
        "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Clusters"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "networkPolicy": {"from": [{"podSelector": {}}], "egress": [{"ports": [{"port": 443}]}]},
        "service": {"type": "LoadBalancer", "port": 7443, "loadBalancerSourceRanges": ["10.0.0.0/8"]},
        "advertiseURL": "https://fed.example.com:7443",
    },
    {
        "nodeSelector": {"pool": "control"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "system-cluster-critical",
        "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
        "podLabels": {"team": "platform"},
        "podAnnotations": {"note": "1"},
        "image": {"digest": f"sha256:{'0' * 64}"},
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "extraArgs": ["--new"],
        "extraEnv": [{"name": "FEDERATION_OIDC_CA_FILE", "value": "/etc/company/ca.crt"}],
        "extraVolumes": [{"name": "company", "configMap": {"name": "company-ca"}}],
        "extraVolumeMounts": [{"name": "company", "mountPath": "/etc/company", "readOnly": True}],
    },
)


CHOICES = tuple(product((False, True), repeat=len(OPTIONS)))
KINDS = {
    "Certificate",
    "ConfigMap",
    "Deployment",
    "NetworkPolicy",
    "Pod",
    "PodDisruptionBudget",
    "PrometheusRule",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "StatefulSet",
}


def values_of(store: str, source: str, choice: Sequence[bool]) -> dict[str, Any]:
    values: dict[str, Any] = {**STORES[store], **CERTIFICATES[source]}
    for option, is_chosen in zip(OPTIONS, choice, strict=True):
        values |= option if is_chosen else {}
    return values


def choice_of(store: str, source: str) -> Sequence[bool]:
    """Return one choice of options for each store and source, so that every pair of any two settings occurs."""
    first, second = list(STORES).index(store), list(CERTIFICATES).index(source)
    return CHOICES[(first + 3 * second + 2 * first * second) % len(CHOICES)]


@cache
def loaded() -> helm_chart.Chart:
    return helm_chart.Chart.load(str(CHART))


def render(values: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return the rendered objects by kind and name."""
    loaded().validate_schema(dict(values))
    texts = loaded().render(dict(values), name="fed", namespace="clusters")
    documents = [
        document
        for file, text in texts.items()
        if not file.endswith("NOTES.txt")
        for document in yaml.safe_load_all(text)
        if document
    ]
    objects = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    assert len(objects) == len(documents), "two objects have one name"
    return objects


def workload_of(objects: Mapping[tuple[str, str], Any]) -> Any:
    (found,) = [each for (kind, _), each in objects.items() if kind in ("StatefulSet", "Deployment")]
    return found


def pods_of(objects: Mapping[tuple[str, str], Any]) -> list[Any]:
    return [workload_of(objects)["spec"]["template"]["spec"], objects["Pod", "fed-federation-test"]["spec"]]


def container_of(objects: Mapping[tuple[str, str], Any]) -> Any:
    (container,) = workload_of(objects)["spec"]["template"]["spec"]["containers"]
    return container


def check_pod(pod: Any, claims: set[str]) -> None:
    """Check that a pod is restricted and that its volumes and their uses agree."""
    context = pod["securityContext"]
    assert context["runAsNonRoot"]
    assert context["runAsUser"] == 65532
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    volumes = [each["name"] for each in pod["volumes"]]
    assert sorted([*volumes, *claims]) == sorted(each["name"] for each in container["volumeMounts"])
    paths = [each["mountPath"] for each in container["volumeMounts"]]
    assert len(set(paths)) == len(paths)
    assert "/tmp" in paths  # Python writes there, and the root file system is read-only


def check_command(line: Sequence[str]) -> None:
    """Check that `fedctl` accepts a command line."""
    group: Any = typer.main.get_command(app)
    name, *arguments = line
    group.get_command(None, name).make_context(name, arguments)


def check_arguments(container: Any) -> None:
    """Check that the program accepts the arguments and knows the variables."""
    check_command(container["args"])
    known = {f"FEDERATION_{field.name.upper()}" for field in fields(Settings)}
    for variable in container.get("env") or ():
        assert variable["name"] in known
        assert isinstance(variable.get("value", ""), str)


def check(values: Mapping[str, Any]) -> None:
    """Render the chart and check that its pods are restricted, that the program can run, and that all parts agree."""
    objects = render(values)
    claims = {each["metadata"]["name"] for each in workload_of(objects)["spec"].get("volumeClaimTemplates", [])}
    workload, test = pods_of(objects)
    check_pod(workload, claims)
    check_pod(test, set())
    for pod in (workload, test):
        check_arguments(pod["containers"][0])
    files = {
        argument.partition("=")[2].rpartition("/")[0]
        for argument in container_of(objects)["args"]
        if "-file=" in argument
    }
    assert files <= {each["mountPath"] for each in container_of(objects)["volumeMounts"]}
    labels = workload_of(objects)["spec"]["template"]["metadata"]["labels"]
    for kind, path in (
        ("Service", "selector"),
        ("NetworkPolicy", "podSelector"),
        ("PodDisruptionBudget", "selector"),
    ):
        for (found, _), each in objects.items():
            if found == kind:
                selector = each["spec"][path]
                assert (selector.get("matchLabels") or selector).items() <= labels.items()
    assert all(each["metadata"]["namespace"] == "clusters" for each in objects.values())
    assert {kind for kind, _ in objects} <= KINDS


def test_every_pair_of_settings_is_rendered() -> None:
    rendered = [(store, source, *choice_of(store, source)) for store, source in product(STORES, CERTIFICATES)]
    settings = (STORES, CERTIFICATES, *((False, True),) * len(OPTIONS))
    for (one, first), (other, second) in combinations(enumerate(settings), 2):
        assert {(row[one], row[other]) for row in rendered} == set(product(first, second))


@pytest.mark.parametrize("source", CERTIFICATES)
@pytest.mark.parametrize("store", STORES)
def test_each_pair_of_settings_renders_restricted_pods_that_the_program_can_run(store: str, source: str) -> None:
    check(values_of(store, source, choice_of(store, source)))


@pytest.mark.nightly
@pytest.mark.parametrize("source", CERTIFICATES)
@pytest.mark.parametrize("store", STORES)
def test_every_combination_renders_restricted_pods_that_the_program_can_run(store: str, source: str) -> None:
    for choice in CHOICES:
        check(values_of(store, source, choice))


@pytest.mark.parametrize("store", STORES)
def test_an_existing_host_is_reached_by_its_kubeconfig(store: str) -> None:
    values = {**STORES[store], "existingHost": {"kubeconfigSecret": "host-admin"}}
    objects = render(values)
    container = container_of(objects)
    check_arguments(container)
    given = {name: value for name, _, value in (argument.partition("=") for argument in container["args"][1:])}
    assert given["--host-kubeconfig"] == "/etc/federation/host/kubeconfig"
    assert given["--host-url"] == "https://fed-federation.clusters.svc:443"
    assert not {"--advertise-url", "--tls-san", "--tls-cert-file"} & given.keys()
    settings = from_environment({"directory": ".", "host_kubeconfig": "x", "host_url": given["--host-url"]}, {})
    assert settings.has_existing_host
    claims = {each["metadata"]["name"] for each in workload_of(objects)["spec"].get("volumeClaimTemplates", [])}
    check_pod(pods_of(objects)[0], claims)
    with pytest.raises(helm.HelmError, match="advertiseURL, audit and tls are for the embedded API server"):
        render(values | {"advertiseURL": "https://fed.example.com"})


def test_the_web_ui_of_an_existing_host_has_a_service_of_its_own() -> None:
    peers = [{"namespaceSelector": {}}]
    host = {"kubeconfigSecret": "host-admin", "ui": True}
    objects = render({**STORES["sqlite"], "existingHost": host, "networkPolicy": {"from": [], "uiFrom": peers}})
    container = container_of(objects)
    check_arguments(container)
    assert "--ui-port=7444" in container["args"]
    assert [each["name"] for each in container["ports"]] == ["https", "ui"]
    (port,) = objects["Service", "fed-federation-ui"]["spec"]["ports"]
    assert port["targetPort"] == "ui"
    assert [each["targetPort"] for each in objects["Service", "fed-federation"]["spec"]["ports"]] == ["https"]
    reviews, ui = objects["NetworkPolicy", "fed-federation"]["spec"]["ingress"]
    assert "from" not in reviews
    assert ui == {"ports": [{"port": "ui", "protocol": "TCP"}], "from": peers}
    with pytest.raises(helm.HelmError, match="is for an existing host"):
        render({**STORES["sqlite"], "existingHost": {"ui": True}})


def test_the_control_plane_gets_no_rights_in_the_cluster_that_runs_it() -> None:
    chosen = OPTIONS[0] | OPTIONS[1]
    pairs = zip(STORES.values(), cycle(CERTIFICATES.values()))
    assert {kind for pair in pairs for kind, _ in render({**pair[0], **pair[1], **chosen})} == KINDS
    assert not loaded().crds, "the control plane serves its kinds itself"


@pytest.mark.parametrize(("store", "has_budget"), [("sqlite", False), ("postgresql", True), ("one replica", False)])
def test_a_disruption_budget_protects_several_replicas_only(store: str, has_budget: bool) -> None:
    objects = render(STORES[store])
    assert (("PodDisruptionBudget", "fed-federation") in objects) is has_budget


def test_dashboard_and_alerts_are_the_generated_ones() -> None:
    objects = render(OPTIONS[1])
    dashboard = objects["ConfigMap", "fed-federation-dashboard"]
    assert json.loads(dashboard["data"]["federation.json"]) == generate_monitoring.dashboard()
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["metadata"]["annotations"] == {"grafana_folder": "Clusters"}
    rules = objects["PrometheusRule", "fed-federation"]
    assert rules["spec"] == generate_monitoring.rules()
    assert rules["metadata"]["labels"]["release"] == "prometheus"
    assert not {("ConfigMap", "fed-federation-dashboard"), ("PrometheusRule", "fed-federation")} & render({}).keys()


def test_the_list_of_metric_sources_is_one_that_the_program_reads() -> None:
    source = {"url": "https://prometheus.example", "tokenFile": "/etc/federation/metric-credentials/token"}
    values = {**STORES["sqlite"], "metricSources": {"sources": {"main": source}, "secretName": "prometheus"}}
    objects = render(values)
    (text,) = objects["ConfigMap", "fed-federation-metric-sources"]["data"].values()
    assert parse_sources(yaml.safe_load(text), setting="metricSources")["main"].token_file == source["tokenFile"]
    container = container_of(objects)
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    (path,) = [each["value"] for each in container["env"] if each["name"] == "FEDERATION_METRIC_SOURCES_FILE"]
    assert path == f"{mounts['metric-sources']}/sources.yaml"
    assert source["tokenFile"].startswith(mounts["metric-credentials"])
    with pytest.raises(helm.HelmError, match="there is one list of sources"):
        render(values | {"settings": {"metric_sources_file": "/x"}})


def test_a_volume_is_kept_and_a_claim_of_the_user_is_used() -> None:
    made = workload_of(render({}))["spec"]
    assert made["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert made["replicas"] == 1
    (volume,) = [
        each for each in pods_of(render(STORES["sqlite with a claim"]))[0]["volumes"] if each["name"] == "state"
    ]
    assert volume["persistentVolumeClaim"] == {"claimName": "mine"}


def test_the_database_url_is_read_from_a_secret() -> None:
    for store, expected in (("postgresql", "fed-federation-database"), ("postgresql with a Secret", "database")):
        objects = render(STORES[store])
        (variable,) = [each for each in container_of(objects)["env"] if each["name"] == "FEDERATION_STORE_URL"]
        assert variable["valueFrom"]["secretKeyRef"]["name"] == expected
        assert (("Secret", expected) in objects) is (store == "postgresql")
        assert "secret@db" not in yaml.safe_dump(workload_of(objects))


def test_the_certificate_covers_the_service_the_url_and_further_names() -> None:
    certificate = render(
        {"advertiseURL": "https://api.example.com:8443", **CERTIFICATES["certManager"]},
    )["Certificate", "fed-federation"]["spec"]
    assert certificate["ipAddresses"] == ["203.0.113.7"]
    assert {"fed-federation.clusters.svc", "api.example.com"} <= set(certificate["dnsNames"])
    arguments = container_of(render({"advertiseURL": "https://[2001:db8::7]:8443", **CERTIFICATES["own"]}))["args"]
    for name in ("fed-federation.clusters.svc", "2001:db8::7", "fed.example.com", "203.0.113.7"):
        assert f"--tls-san={name}" in arguments


def test_settings_become_variables() -> None:
    settings = {
        "oidc_signing_algs": ["RS256", "ES256"],
        "health_period_s": 2.5,
        "store_bytes_max": 10_000_000_000,
        "scheduling_annotations": "disabled",
    }
    variables = {each["name"]: each.get("value") for each in container_of(render({"settings": settings}))["env"]}
    assert variables["FEDERATION_OIDC_SIGNING_ALGS"] == "RS256,ES256"
    assert variables["FEDERATION_HEALTH_PERIOD_S"] == "2.5"
    assert variables["FEDERATION_STORE_BYTES_MAX"] == "10000000000"
    assert variables["FEDERATION_SCHEDULING_ANNOTATIONS"] == "disabled"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"store": "etcd"}, "store"),
        ({"replicas": 3}, "replicas"),
        ({"postgresql": {"replicas": 0}}, "replicas"),
        ({"settings": {"store_url": "sqlite:///x"}}, "store_url"),
        ({"settings": {"health": {"period": 1}}}, "health"),
        ({"advertiseURL": "http://fed.example.com"}, "advertiseURL"),
        ({"tls": {"source": "letsencrypt"}}, "source"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"sqlite": {"size": 10}}, "size"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(helm.HelmError, match=message):
        loaded().validate_schema(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"store": "postgresql"}, "postgresql: set url, or existingSecret.name"),
        (
            {"store": "postgresql", "postgresql": {"url": "postgresql://db", "existingSecret": {"name": "x"}}},
            "exclude each other",
        ),
        ({"tls": {"source": "secret"}}, "tls.secretName: name the Secret"),
        ({"tls": {"source": "certManager"}}, "issuerRef.name: name the issuer"),
    ],
)
def test_values_that_do_not_fit_together_are_refused_with_the_remedy(values: dict[str, Any], message: str) -> None:
    with pytest.raises(helm.HelmError, match=message):
        render(values)


def test_the_notes_name_commands_that_exist() -> None:
    for values in STORES.values():
        notes = loaded().render(dict(values), name="fed", namespace="clusters")["federation/templates/NOTES.txt"]
        commands = re.findall(r"\bfedctl ([^>\n]+)", notes)
        assert len(commands) == 2
        for command in commands:
            check_command(command.split())
        kind, name = re.findall(r"rollout status (\w+)/(\S+)", notes)[0]
        workload = workload_of(render(values))
        assert (workload["kind"].lower(), workload["metadata"]["name"]) == (kind, name)


def test_helm_finds_nothing_to_complain_about() -> None:
    for store, source in product(STORES.values(), CERTIFICATES.values()):
        result = helm_chart.lint(str(CHART), {**store, **source})
        assert not result["errors"]
        assert [each["error"] for each in result["messages"]] == ["icon is recommended"]


def test_the_chart_has_the_version_of_the_product() -> None:
    assert loaded().metadata["version"] == loaded().metadata["appVersion"] == __version__


def test_every_value_is_described_by_the_schema_and_used_by_a_template() -> None:
    schema = loaded().schema
    assert schema is not None
    templates = "".join(each["data"] for each in loaded().templates)
    for name, default in loaded().values.items():
        described = schema["properties"][name]
        assert f".Values.{name}" in templates
        if isinstance(default, dict) and "properties" in described:
            assert set(described["properties"]) == set(default)
    assert set(schema["properties"]) - {"global"} == set(loaded().values)
