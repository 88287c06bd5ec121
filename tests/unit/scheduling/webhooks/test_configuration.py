"""Webhook configurations: payload version, URLs, validation, and decisive changes."""

from typing import Any

import pytest

from federation.apimachinery.errors import PluginError
from federation.scheduling.engine import Engine
from federation.scheduling.framework.profile import DEFAULT_PROFILE, Profile, apply_profile, refs
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit
from federation.scheduling.framework.types import ReplicasStrategy
from federation.scheduling.profiles import Profiles
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.webhooks import v1alpha1, v1beta1
from federation.scheduling.webhooks.configuration import POINTS, compile_webhook, decisive_hash, join_url, unusable
from federation.scheduling.webhooks.factory import make_webhook, with_webhooks


def configured(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"payloadVersions": ["v1beta1"], "urlPrefix": "http://p", **spec}}


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["v1alpha1"], v1alpha1.Webhook),
        (["v1beta1"], v1beta1.Webhook),
        (["v1alpha1", "v1beta1"], v1alpha1.Webhook),
        (["v2", "v1beta1", "v1alpha1"], v1beta1.Webhook),
    ],
)
def test_the_first_version_that_is_known_is_spoken(versions: list[str], expected: type) -> None:
    assert type(make_webhook(compile_webhook(configured(payloadVersions=versions)), {})) is expected


def test_a_configuration_without_our_fields_works_as_in_kubeadmiral() -> None:
    options = compile_webhook(configured(payloadVersions=["v1alpha1"], filterPath="/f"))
    assert (options.is_ignorable, options.timeout_s, options.urls) == (False, 5.0, {"filter": "http://p/f"})
    assert options.unit_fields == options.cluster_fields == frozenset()


@pytest.mark.parametrize(
    ("prefix", "path", "url"),
    [
        ("http://p:80", "filter", "http://p:80/filter"),
        ("http://p/base/", "/filter", "http://p/base/filter"),
        ("https://p/base", "a/../filter/", "https://p/base/filter/"),
        ("http://p//a/./b", "/", "http://p/a/b/"),
        ("http://p/x?token=1", "filter", "http://p/x/filter?token=1"),
        ("http://p", "filter?x=1", "http://p/filter%3Fx=1"),
        ("http://p", "", "http://p/"),
    ],
)
def test_prefix_and_path_are_joined_as_go_joins_them(prefix: str, path: str, url: str) -> None:
    assert join_url(prefix, path) == url


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"payloadVersions": ["v7"]}, r"payloadVersions \['v7'\] is supported; known: v1alpha1, v1beta1"),
        ({"urlPrefix": "ftp://p"}, "urlPrefix 'ftp://p' is not an http or https address"),
        ({"urlPrefix": "http://["}, "webhook 'p': "),
        ({"httpTimeout": "soon"}, "httpTimeout"),
        ({"failurePolicy": "Maybe"}, "failurePolicy 'Maybe' is neither Fail nor Ignore"),
        ({"fields": {"unit": ["secrets"]}}, "fields.unit has secrets; known: annotations, current"),
        ({"payloadVersions": ["v1alpha1"], "replicasPath": "/r"}, "replicasPath needs payload version v1beta1"),
        ({"payloadVersions": ["v1alpha1", "v1beta1"], "fields": {"unit": ["labels"]}}, "fields needs payload version"),
        ({"tlsConfig": {"caData": "?"}}, "tlsConfig.caData is not base64"),
        ({"tlsConfig": {"certData": "QQ=="}}, "one of certData and keyData without the other"),
        ({"tlsConfig": {"caData": "QQ==", "insecure": True}}, "both insecure and caData.* remove one of them"),
    ],
)
def test_an_invalid_configuration_is_rejected_with_field_and_remedy(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(PluginError, match=problem):
        compile_webhook(configured(**spec))


@pytest.mark.parametrize("is_ignorable", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_a_plugin_with_an_unusable_configuration_fails_by_its_policy(point: str, is_ignorable: bool) -> None:
    source = configured(payloadVersions=["v7"], failurePolicy="Ignore" if is_ignorable else "Fail")
    plugins = with_webhooks(load_plugins(), [unusable(source, "no such version")])
    profile = apply_profile(DEFAULT_PROFILE, {"spec": {"plugins": {point: {"enabled": [{"name": "p"}]}}}})
    clusters = (a_cluster("east").offering(cpu="9").built(),)
    decision = Engine(plugins).decide(a_divided_unit(2), Snapshot(1, clusters), profile, now=NOW)
    assert decision.is_success is is_ignorable
    assert f"in {point}" in decision.reason
    assert "no such version" in decision.reason


def test_kubeadmirals_protocol_has_no_replicas_call() -> None:
    webhook = compile_webhook(configured(payloadVersions=["v1alpha1"]))
    with pytest.raises(PluginError, match=r"'p' cannot be enabled for replicas"):
        Framework(Profile(replicas=refs("p")), with_webhooks(PluginRegistry({}), [webhook]))


def test_only_decisive_fields_trigger_rescheduling() -> None:
    before = decisive_hash(configured())
    assert decisive_hash(configured(httpTimeout="9s", failurePolicy="Ignore", tlsConfig={"insecure": True})) == before
    assert decisive_hash(configured(scorePath="/s")) != before
    assert decisive_hash(configured(fields={"cluster": ["labels"]})) != before


def test_a_profiles_hash_covers_the_webhooks_that_it_runs_and_no_others() -> None:
    profiles = Profiles()
    enabled = {"replicas": {"enabled": [{"name": "p", "type": "Webhook"}]}}
    profiles.put({"metadata": {"name": "mine"}, "spec": {"plugins": enabled}})
    profiles.put({"metadata": {"name": "other"}, "spec": {}})
    alone, other = profiles.hash("mine"), profiles.hash("other")
    profiles.put_plugin("p", "1")
    first = profiles.hash("mine")
    profiles.put_plugin("p", "2")
    assert len({alone, first, profiles.hash("mine")}) == 3
    assert profiles.hash("other") == other
    assert profiles.names_with_plugin("p") == ["mine"]
    profiles.put_plugin("p", "")
    assert profiles.hash("mine") == alone
    profiles.remove("mine")
    assert profiles.names_with_plugin("p") == []
    assert profiles.get("mine", ReplicasStrategy.SPREAD) is None
