"""The chart of the agent, rendered by Helm's own library."""

from collections.abc import Mapping
from typing import Any

import helm_python as helm
import pytest
import typer
from tests.support.agentchart import CHART, NAMESPACE, TOKEN, loaded, render

from federation import __version__
from federation.cli.main import app


def pod_of(values: Mapping[str, Any]) -> Any:
    return render(values)["StatefulSet", "federation-agent"]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    "values",
    [
        {"token": TOKEN},
        {"existingSecret": {"name": "mine", "key": "bundle"}},
        {
            "token": TOKEN,
            "persistence": {"existingClaim": "mine"},
            "image": {"digest": f"sha256:{'0' * 64}"},
            "nodeSelector": {"pool": "system"},
            "tolerations": [{"operator": "Exists"}],
            "podAnnotations": {"note": "1"},
        },
    ],
)
def test_the_pod_is_restricted_and_the_program_accepts_its_arguments(values: dict[str, Any]) -> None:
    stateful = render(values)["StatefulSet", "federation-agent"]["spec"]
    pod = stateful["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    name, *arguments = container["args"]
    command: Any = typer.main.get_command(app)
    command.get_command(None, name).make_context(name, arguments)
    volumes = {each["name"] for each in pod["volumes"]}
    volumes |= {each["metadata"]["name"] for each in stateful.get("volumeClaimTemplates", [])}
    assert volumes == {each["name"] for each in container["volumeMounts"]}
    assert stateful["selector"]["matchLabels"].items() <= stateful["template"]["metadata"]["labels"].items()


def test_the_token_is_read_from_a_secret_and_not_needed_after_the_registration() -> None:
    (variable,) = pod_of({"token": TOKEN})["containers"][0]["env"]
    assert variable["name"] == "FEDERATION_AGENT_TOKEN"
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "federation-agent-token", "key": "token", "optional": True}
    (variable,) = pod_of({"existingSecret": {"name": "mine"}})["containers"][0]["env"]
    assert variable["valueFrom"]["secretKeyRef"]["name"] == "mine"
    assert ("Secret", "federation-agent-token") not in render({"existingSecret": {"name": "mine"}})


def test_without_the_rights_to_join_only_tokens_of_the_account_remain() -> None:
    objects = render({"token": TOKEN, "rights": {"join": False}})
    assert ("ClusterRole", "federation-agent") not in objects
    (rule,) = objects["Role", "federation-agent"]["rules"]
    assert (rule["resources"], rule["resourceNames"]) == (["serviceaccounts/token"], ["kubeadmiral-member"])


def test_no_rule_has_a_wildcard() -> None:
    for (kind, _), each in render({"token": TOKEN}).items():
        if kind in ("Role", "ClusterRole"):
            assert "*" not in str(each["rules"])


@pytest.mark.parametrize(
    ("values", "namespace", "message"),
    [
        ({}, NAMESPACE, "token: set it, or existingSecret.name"),
        ({"token": TOKEN, "existingSecret": {"name": "mine"}}, NAMESPACE, "exclude each other"),
        ({"token": TOKEN}, "default", "install the agent in the namespace kube-admiral-system"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_the_remedy(
    values: dict[str, Any], namespace: str, message: str
) -> None:
    with pytest.raises(helm.HelmError, match=message):
        render(values, namespace)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"token": "eyJhbGciOi"}, "token"), ({"persistence": {"size": 10}}, "size"), ({"replicas": 2}, "replicas")],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(helm.HelmError, match=message):
        loaded().validate_schema(values)


def test_the_chart_has_the_version_of_the_program() -> None:
    assert f"version: {__version__}\nappVersion: {__version__}" in (CHART / "Chart.yaml").read_text()
