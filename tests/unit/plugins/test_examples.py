"""Each example starts with one command and works over HTTP, one of them over TLS."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.plugins import configure, example, plugin_harness
from tests.support.schedule_harness import Harness
from tests.support.vectors import ROOT

from federation.api.v1alpha1.schedulerpluginwebhookconfiguration import SchedulerPluginWebhookConfiguration
from federation.apiserver.auth.pki import ensure_pki
from federation.scheduling.explanations import rows
from federation.scheduling.webhooks.configuration import compile_webhook

EXAMPLES = sorted(path.stem for path in (ROOT / "plugins" / "examples").glob("*.py"))


async def explained(harness: Harness) -> dict[str, Any]:
    """Return the last decision's explanation."""
    (record, *_) = await harness.journaled()
    found: dict[str, Any] = json.loads(record.explanation)
    return found


async def test_business_rules_reject_clusters_with_reasons() -> None:
    async with example("business_rules") as port, plugin_harness() as harness:
        await configure(
            harness,
            "business-rules",
            f"http://127.0.0.1:{port}",
            filterPath="/filter",
            fields={"unit": ["labels"], "cluster": ["labels"]},
        )
        for name in ("blue", "red"):
            await harness.cluster(name, labels={"teams": name})
        await harness.profile("r", plugins={"filter": {"enabled": [{"name": "business-rules"}]}})
        await harness.policy("p", schedulingProfile="r")
        await harness.deployment(policy="p", labels={"team": "red"})
        await harness.becomes({"red": None})
        blue = next(row for row in rows(await explained(harness)) if row.name == "blue")
        assert (blue.rejected_by, blue.reasons) == ("business-rules", ("cluster(s) do not admit team red",))


async def test_costs_prefer_the_cheapest_cluster_with_the_profiles_weight(tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"auction": {"core": 0.4, "gib": 0.1}}')
    async with example("cost_score", "--prices", str(prices)) as port, plugin_harness() as harness:
        fields = {"unit": ["resourceRequest"], "cluster": ["labels"]}
        await configure(harness, "cost", f"http://127.0.0.1:{port}", scorePath="/score", fields=fields)
        for name, price_class in (("a", "default"), ("b", "reserved"), ("c", "auction")):
            await harness.cluster(name, labels={"price-class": price_class})
        await harness.profile("thrifty", plugins={"score": {"enabled": [{"name": "cost", "weight": 9}]}})
        await harness.policy("p", schedulingProfile="thrifty", maxClusters=1)
        await harness.deployment(policy="p")
        await harness.becomes({"c": None})
        found = {row.name: row for row in rows(await explained(harness))}
        assert {name: row.scores["cost"] for name, row in found.items()} == {
            "a": (12, 12),
            "b": (20, 20),
            "c": (100, 100),
        }
        assert found["a"].remarks == {"cost": ("0.32 ct per replica and hour",)}


async def test_carbon_divides_replicas_over_tls_within_the_policys_limits(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path / "pki", now=datetime.now(UTC), names=["carbon.example"])
    intensity = tmp_path / "grams.json"
    intensity.write_text('{"hydro": 20, "solar": 60}')
    tls = {
        "caData": base64.b64encode(pki.ca_certificate.read_bytes()).decode(),
        "serverName": "carbon.example",
    }
    serving = ("--certificate", str(pki.serving.certificate), "--key", str(pki.serving.key))
    async with (
        example("carbon_replicas", *serving, "--intensity", str(intensity)) as port,
        plugin_harness() as harness,
    ):
        fields = {"unit": ["current"], "cluster": ["labels"]}
        url = f"https://127.0.0.1:{port}"
        await configure(harness, "carbon", url, replicasPath="/replicas", fields=fields, tlsConfig=tls)
        for name, grid in (("fjord", "hydro"), ("desert", "solar"), ("ruhr", "coal")):
            await harness.cluster(name, labels={"grid": grid})
        await harness.profile("clean", plugins={"replicas": {"enabled": [{"name": "carbon"}]}})
        limits = [{"cluster": "fjord", "preferences": {"maxReplicas": 5}}, {"cluster": "desert"}, {"cluster": "ruhr"}]
        await harness.policy("p", schedulingMode="Divide", schedulingProfile="clean", placement=limits)
        await harness.deployment(policy="p", replicas=8)
        await harness.becomes({"fjord": 5, "desert": 3})
        assert (await explained(harness))["remarks"]["carbon"]["ruhr"] == ["800 g CO2 per kWh"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_configuration_in_an_examples_first_lines_can_be_used(name: str) -> None:
    text = (ROOT / "plugins" / "examples" / f"{name}.py").read_text().split('"""')[1]
    (manifest,) = (part for part in text.split("\n\n") if "kind: SchedulerPluginWebhookConfiguration" in part)
    source = yaml.safe_load(manifest)
    SchedulerPluginWebhookConfiguration.model_validate(source)
    assert compile_webhook(source).urls
    (command,) = (part.strip() for part in text.split("\n\n") if part.strip().startswith("python "))
    port = command.rpartition(" ")[2]
    assert command == f"python plugins/examples/{name}.py --port {port}"
    assert source["spec"]["urlPrefix"] == f"http://127.0.0.1:{port}", "it is where the command starts it"
