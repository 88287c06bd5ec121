"""The audit policy: matching rules and invalid policies."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.sources import ROOT

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.audit.auditpolicy import Decision, Level, load, to_policy
from federation.apiserver.auth.identity import Attributes, User

JANE = User("jane", ("dev", "system:authenticated"))
SECRET = Attributes("get", "", "v1", "secrets", "", "ns", "s1")
STATUS = Attributes("patch", "apps", "v1", "deployments", "status", "ns", "web")
NODES = Attributes("list", "", "v1", "nodes")
HEALTH = Attributes("get", path="/healthz/ping")


def policy(*rules: dict[str, Any], **fields: Any) -> Any:
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **fields}


def level(rule: dict[str, Any], attributes: Attributes, user: User = JANE) -> Level:
    return to_policy(policy({"level": "Metadata", **rule})).decide(user, attributes).level


@pytest.mark.parametrize(
    ("rule", "matched", "others"),
    [
        ({}, [SECRET, STATUS, NODES, HEALTH], []),
        ({"users": ["jane"]}, [SECRET, HEALTH], []),
        ({"users": ["joe"]}, [], [SECRET, HEALTH]),
        ({"userGroups": ["ops", "dev"]}, [SECRET, HEALTH], []),
        ({"userGroups": ["ops"]}, [], [SECRET, HEALTH]),
        ({"verbs": ["get"]}, [SECRET, HEALTH], [STATUS, NODES]),
        ({"namespaces": ["ns"]}, [SECRET, STATUS], [NODES, HEALTH]),
        ({"namespaces": [""]}, [NODES], [SECRET, HEALTH]),
        ({"resources": [{"group": ""}]}, [SECRET, NODES], [STATUS, HEALTH]),
        ({"resources": [{"group": "", "resources": ["secrets"]}]}, [SECRET], [NODES, STATUS]),
        ({"resources": [{"group": "", "resources": ["secrets"], "resourceNames": ["s1"]}]}, [SECRET], []),
        ({"resources": [{"group": "", "resources": ["secrets"], "resourceNames": ["s2"]}]}, [], [SECRET]),
        ({"resources": [{"group": "apps", "resources": ["deployments"]}]}, [], [STATUS]),
        ({"resources": [{"group": "apps", "resources": ["deployments/status"]}]}, [STATUS], []),
        ({"resources": [{"group": "apps", "resources": ["*/status"]}]}, [STATUS], []),
        ({"resources": [{"group": "apps", "resources": ["*/scale"]}]}, [], [STATUS]),
        ({"resources": [{"group": "apps", "resources": ["deployments/*"]}]}, [STATUS], []),
        ({"resources": [{"group": "", "resources": ["secrets/*"]}]}, [SECRET], [NODES]),
        ({"resources": [{"group": "apps", "resources": ["*"]}]}, [STATUS], [SECRET]),
        ({"nonResourceURLs": ["/healthz*"]}, [HEALTH], [SECRET, Attributes("get", path="/livez")]),
        ({"nonResourceURLs": ["/healthz"]}, [], [HEALTH, SECRET]),
        ({"nonResourceURLs": ["*"]}, [HEALTH], [SECRET]),
    ],
)
def test_a_rule_matches_as_in_kube_apiserver(
    rule: dict[str, Any], matched: list[Attributes], others: list[Attributes]
) -> None:
    assert [level(rule, attributes) for attributes in matched] == [Level.Metadata] * len(matched)
    assert [level(rule, attributes) for attributes in others] == [Level.None_] * len(others)


def test_the_first_rule_that_matches_decides() -> None:
    held = to_policy(policy({"level": "None", "verbs": ["get"]}, {"level": "Request"}, {"level": "Metadata"}))
    assert held.decide(JANE, SECRET).level is Level.None_
    assert held.decide(JANE, NODES).level is Level.Request


def test_omitted_stages_add_up_and_a_rule_overrides_managed_fields() -> None:
    held = to_policy(
        policy(
            {"level": "Request", "omitStages": ["Panic"], "omitManagedFields": False, "users": ["jane"]},
            {"level": "Request"},
            omitStages=["RequestReceived"],
            omitManagedFields=True,
        )
    )
    assert held.decide(JANE, SECRET) == Decision(Level.Request, frozenset({"Panic", "RequestReceived"}))
    assert held.decide(User("joe"), SECRET) == Decision(
        Level.Request, frozenset({"RequestReceived"}), includes_managed_fields=False
    )


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "not a Policy"),
        ([], "not a Policy"),
        ({"apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy"}, "not a Policy"),
        (policy(), "rules"),
        (policy({}), r"rules\[0\].level None"),
        (policy({"level": "metadata"}), "choose None, Metadata, Request, RequestResponse"),
        (policy({"level": "None"}, {"level": "None", "user": ["x"]}), r"rules\[1\].user: unknown field"),
        (policy({"level": "None"}, omitStage=[]), "omitStage: unknown field"),
        (policy({"level": "None", "omitStages": ["Late"]}), "Late"),
        (policy({"level": "None", "verbs": "get"}), r"rules\[0\].verbs: must be a list"),
        (policy({"level": "None", "resources": [{"group": 1}]}), r"resources\[0\].group"),
        (policy({"level": "None", "resources": ["pods"]}), r"resources\[0\]: must be an object"),
        (policy({"level": "None", "resources": {}, "omitManagedFields": "no"}), "omitManagedFields"),
        (policy({"level": "None", "resources": {"group": ""}}), "resources: must be a list"),
        (policy({"level": "None", "resources": [{"group": "", "resourceNames": ["x"]}]}), "needs resources"),
        (policy({"level": "None", "nonResourceURLs": ["healthz"]}), "must begin with /"),
        (policy({"level": "None", "nonResourceURLs": ["/a*b"]}), "may end in"),
        (policy({"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["x"]}), "two rules"),
        (policy("none"), r"rules\[0\]: must be an object"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_policy_names_the_field(value: Any, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        to_policy(value)


def test_a_policy_file_is_read_or_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    with pytest.raises(ConfigurationError, match=r"policy\.yaml: No such file"):
        load(path)
    for text, what in (("{", "not YAML"), ("a: b", "not a Policy")):
        path.write_text(text)
        with pytest.raises(ConfigurationError, match=rf"policy\.yaml: {what}"):
            load(path)
    path.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")
    assert load(path).decide(JANE, SECRET).level is Level.Metadata


def test_the_policy_in_the_documentation_is_valid() -> None:
    text = (ROOT / "docs/operations.md").read_text()
    manifest = next(block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "kind: Policy" in block)
    held = to_policy(yaml.safe_load(manifest))
    assert held.decide(JANE, HEALTH).level is Level.None_
    assert held.decide(JANE, STATUS).level is Level.Request
