"""The example manifests: ours match their schemas, those of document 003 equal the document."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.vectors import FOLDER, ROOT
from tools.definitions import KINDS

from federation.api import names
from federation.planning.overrides import policies, policymatching
from federation.scheduling.engine import Engine
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.snapshot import Snapshot

EXAMPLES = ROOT / "examples"
MODELS = {(kind.DEFINITION.resource.api_version, kind.DEFINITION.resource.kind): kind for kind in KINDS}
SEED = FOLDER.parent / "seeds" / "003_8a0964e2000c780c.txt"


def manifests(folder: Path) -> list[dict[str, Any]]:
    return [
        manifest
        for file in sorted(folder.rglob("*.yaml"))
        for manifest in yaml.load_all(file.read_text(), yaml.CSafeLoader)
        if manifest is not None and {"kind", "metadata"} <= manifest.keys()  # others are patches or of kustomize
    ]


@pytest.mark.parametrize("manifest", manifests(EXAMPLES), ids=lambda m: f"{m['kind']}-{m['metadata']['name']}")
def test_custom_resources_in_examples_match_their_schema(manifest: dict[str, Any]) -> None:
    model = MODELS.get((manifest["apiVersion"], manifest["kind"]))
    if model is not None:
        model.model_validate(manifest)


@pytest.mark.skipif(not SEED.exists(), reason=f"the document is not beside the checkout: {SEED}")
@pytest.mark.parametrize("file", ["propagationpolicy.yaml", "overridepolicy.yaml"])
def test_the_seed_manifests_equal_those_in_the_document(file: str) -> None:
    assert (EXAMPLES / "seeds" / "003" / file).read_text() in SEED.read_text()


def test_labels_in_the_seed_examples_name_existing_policies() -> None:
    found = manifests(EXAMPLES / "seeds" / "003")
    existing = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in found}
    for manifest in found:
        labels = manifest["metadata"].get("labels") or {}
        for label, kind in (
            (names.PROPAGATION_POLICY_LABEL, "PropagationPolicy"),
            (names.OVERRIDE_POLICY_LABEL, "OverridePolicy"),
        ):
            assert label not in labels or (kind, labels[label]) in existing


def quickstart() -> dict[str, dict[str, Any]]:
    return {manifest["kind"]: manifest for manifest in manifests(EXAMPLES / "quickstart")}


def test_the_quickstart_override_matches_its_comment_in_each_region() -> None:
    deployment = quickstart()["Deployment"]
    held = policymatching.Bindings()
    held.put(quickstart()["OverridePolicy"])
    clusters = [policies.Cluster("m1", {"region": "beijing"}), policies.Cluster("m2", {"region": "shanghai"})]
    bound = held.resolve(policymatching.subject_of_source(deployment))
    assert policies.compute_overrides(deployment, bound, clusters) == {
        "m1": [
            {
                "op": "replace",
                "path": "/spec/template/spec/containers/0/image",
                "value": "registry.beijing.example.com/nginx:1.27",
            }
        ],
        "m2": [
            {
                "op": "replace",
                "path": "/spec/template/spec/containers/0/env",
                "value": [{"name": "MIRROR", "value": "none"}],
            }
        ],
    }


def test_the_topology_example_divides_as_commented() -> None:
    manifest = {found["kind"]: found for found in manifests(EXAMPLES / "topology")}
    unit = a_divided_unit(
        manifest["Deployment"]["spec"]["replicas"],
        topology_spread=TOPOLOGY_SPREAD.of(compile_policy(manifest["PropagationPolicy"])),
    )
    zones = {"member-1": ("eu", "eu-1"), "member-2": ("eu", "eu-2"), "member-3": ("us", "us-1")}
    members = [a_cluster(name).labelled(region=region, zone=zone).built() for name, (region, zone) in zones.items()]
    decision = Engine(load_plugins()).decide(unit, Snapshot(1, tuple(members)), DEFAULT_PROFILE, now=NOW)
    eu = sorted(decision.placements[name] or 0 for name in ("member-1", "member-2"))
    assert (eu, decision.placements["member-3"]) in (([2, 2], 3), ([1, 2], 4))
    alone = Engine(load_plugins()).decide(unit, Snapshot(1, tuple(members[:2])), DEFAULT_PROFILE, now=NOW)
    assert sum(replicas or 0 for replicas in alone.placements.values()) == 1


def test_the_seed_override_matches_only_clusters_in_the_intersection() -> None:
    found = manifests(EXAMPLES / "seeds" / "003")
    policy = next(manifest for manifest in found if manifest["kind"] == "OverridePolicy")
    template = next(manifest for manifest in found if manifest["metadata"]["name"] == "overridden")
    labels = {"region": "beijing", "az": "zone1", "provider": "volcengine"}
    clusters = [
        policies.Cluster("member1", labels),
        policies.Cluster("member2", labels | {"az": "zone2"}),
        policies.Cluster("member3", labels),
    ]
    overrides = policies.compute_overrides(template, [policies.compile_policy(policy)], clusters)
    assert list(overrides) == ["member1"]
    assert overrides["member1"][0]["value"] == "nginx:test"
