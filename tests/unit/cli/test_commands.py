"""Commands against a real API server: printed output and exit codes."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import Result
from tests.support.apiserver import Parts, api_server
from tests.support.manifests import a_deployment
from typer.main import get_command
from typer.testing import CliRunner

from federation import __version__
from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PLACEMENT_HOLDS
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.cli import clusterviews
from federation.cli.main import app
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.features.types.shippedtypes import ensure_types
from federation.journal.decisions import DecisionRecord
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import PastMove, past_text
from federation.terminal.plaintext import to_age

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2100, 1, 1, tzinfo=UTC)
"""After the creation time of every object on the server."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("cli")) as parts:
        parts.run(_prepare(parts))
        yield parts


async def _prepare(parts: Parts) -> None:
    await parts.registry.install_crds(crd_manifests())
    client = LocalClient(parts.registry)
    await ensure_types(client)
    spec = {
        "apiEndpoint": "https://east",
        "secretRef": {"name": "east"},
        "taints": [{"key": "gpu", "value": "true", "effect": "NoSchedule"}],
    }
    metadata = {"name": "east", "labels": {"region": "eu"}}
    cluster = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": metadata}
    await client.create(FEDERATED_CLUSTERS, {**cluster, "spec": spec})
    times = {"message": "", "lastProbeTime": to_rfc3339(NOW), "lastTransitionTime": to_rfc3339(NOW)}
    status = {
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "HealthzNotOK", **times},
            {"type": "Joined", "status": "True", "reason": "ClusterJoined", **times},
            {
                **times,
                "type": names.EVICTION_ALLOWED,
                "status": "False",
                "reason": "MajorityNotReady",
                "message": "most clusters do not answer",
            },
        ],
        "kubernetesVersion": "v1.35.0",
        "region": "eu-central",
        "resources": {
            "schedulableNodes": 3,
            "allocatable": {"cpu": "48", "memory": "192Gi"},
            "available": {"cpu": "47500m", "memory": "191Gi"},
        },
    }
    await client.patch(FEDERATED_CLUSTERS, "east", {"status": status}, patch_type=PatchType.MERGE, subresource="status")
    for ago in (_EARLIER, {}):
        at = NOW - timedelta(hours=2 if ago else 0)
        explanation = orjson.dumps({**_EXPLANATION, **ago})
        await parts.journal.append(
            DecisionRecord(at, "apps", "Deployment", "default", "web", "Scheduled", 1.5, explanation)
        )
    await client.create(DEPLOYMENTS, a_deployment("held"))
    held = orjson.dumps({**_EXPLANATION, "previous": {}, "placements": {"east": 4}})
    await parts.journal.append(
        DecisionRecord(LATER - timedelta(hours=1), "apps", "Deployment", "default", "held", "Scheduled", 1.5, held)
    )
    scored = orjson.dumps(_SCORED)
    await parts.journal.append(DecisionRecord(NOW, "apps", "Deployment", "default", "scored", "Scheduled", 1.5, scored))
    wide = orjson.dumps(_WIDE)
    await parts.journal.append(
        DecisionRecord(NOW, "apps", "Deployment", "default", "wide", "NoFeasibleCluster", 1.5, wide)
    )
    failed = orjson.dumps({**_SCORED, "outcome": "PluginFailed", "placements": {}, "previous": {"east": 3}})
    await client.create(DEPLOYMENTS, a_deployment("failed"))
    await parts.journal.append(
        DecisionRecord(LATER, "apps", "Deployment", "default", "failed", "PluginFailed", 1.5, failed)
    )
    deferred = orjson.dumps(_DEFERRED)
    await parts.journal.append(
        DecisionRecord(LATER, "apps", "Deployment", "default", "held", "Deferred", 1.5, deferred)
    )
    await parts.journal.append(
        DecisionRecord(
            NOW, "apps", "Deployment", "default", "alone", "NoFeasibleCluster", 1.5, orjson.dumps(_EXPLANATION)
        )
    )


_WIDE = {
    "outcome": "NoFeasibleCluster",
    "unit": {"kind": "Deployment", "mode": "Duplicate"},
    "clusters": [f"c{number:03}" for number in range(81)],
    "previous": {"c080": None},
    "rejected": {
        f"c{number:03}": {"plugin": "PlacementFilter", "reasons": ["not in the list"]} for number in range(80)
    },
}
_SCORED = {
    "outcome": "Scheduled",
    "copiedBecause": "the policy says Divide, but nothing is divided",
    "unit": {"kind": "Deployment", "mode": "Duplicate"},
    "clusters": ["east", "north"],
    "placements": {"east": None},
    "scores": {
        "clusters": ["east", "north"],
        "plugins": [
            {"plugin": "TaintToleration", "weight": 1, "raw": [0, 0], "normalised": [100, 100]},
            {"plugin": "cost", "weight": 5, "raw": [20, 10], "normalised": [20, 10]},
        ],
        "totals": [200, 150],
    },
}
_DEFERRED = {
    "policy": {"namespace": "default", "name": "divide"},
    "because": ["clusterLabelsHashes"],
    "outcome": "Deferred",
    "reason": "clusterLabelsChanged:false; clusterJoined:false",
    "placements": {"east": 4},
}
_EXPLANATION = {
    "policy": {"namespace": "default", "name": "divide"},
    "ignoredAnnotations": {"kubeadmiral.io/placements": "its value cannot be understood"},
    "stays": {"west": "the pods of a StatefulSet must not run twice"},
    "outcome": "Scheduled",
    "reason": "2/3 clusters are available: 1 cluster(s) had untolerated taint",
    "profile": "default",
    "unit": {"kind": "Deployment", "mode": "Divide", "desiredReplicas": 4},
    "clusters": ["east", "north", "west"],
    "previous": {"east": 1},
    "placements": {"east": 3, "north": 1},
    "rejected": {"west": {"plugin": "TaintToleration", "reasons": ["had untolerated taint [gpu]"]}},
    "topology": [
        {
            "topologyKey": "region",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "minDomains": 3,
            "domains": {"eu": 3, "us": 1},
            "skew": 0,
            "withoutLabel": 2,
            "notCounted": ["us"],
            "notAllowed": ["ap"],
        }
    ],
    "unplaced": 5,
    "unplacedBecause": "maxSkew 1 of topology key region",
    "division": {
        "weights": {"by": "policy", "values": {"east": 3, "north": 1}},
        "steps": [
            {"step": "minimums", "total": 2, "replicas": {}, "remaining": 2},
            {"step": "hold", "untilOthersRun": {"east": 1}},
            {"step": "scaleUp", "difference": 2, "replicas": {"east": 1, "north": 1}},
        ],
        "estimated": {"north": 1},
    },
}


_EARLIER = {
    "topology": None,
    "clusters": ["east", "west"],
    "unit": {"kind": "Deployment", "mode": "Divide", "desiredReplicas": 1},
    "previous": {},
    "placements": {"east": 1},
    "rejected": {},
    "reason": "2/2 clusters are available",
    "inputs": {"policy": "1", "clusters": "a"},
}


def fedctl(server: Parts | None, *arguments: str) -> Result:
    more = ["--kubeconfig", str(server.kubeconfig)] if server is not None else []
    return CliRunner().invoke(app, [*arguments, *more])


def test_clusters_are_listed_with_status_and_free_resources(server: Parts) -> None:
    result = fedctl(server, "clusters")
    assert result.exit_code == 0
    heading, row, halted = result.stdout.splitlines()
    assert heading.split()[:4] == ["NAME", "STATUS", "SINCE", "NODES"]
    assert halted == "failover of east halts: most clusters do not answer"
    for text in ("east", "NotReady (HealthzNotOK)", "47.5/48", "191Gi/192Gi", "gpu=true:NoSchedule", "region=eu"):
        assert text in row


def test_clusters_can_be_selected_named_and_shown_in_other_forms(server: Parts) -> None:
    assert fedctl(server, "clusters", "-o", "name").stdout == "federatedcluster.core.kubeadmiral.io/east\n"
    assert fedctl(server, "clusters", "-l", "region=us").stdout == "no member cluster has the labels region=us\n"
    heading, row, _ = fedctl(server, "clusters", "-l", "region=eu", "-o", "wide").stdout.splitlines()
    cells = dict(zip(heading.replace(" FREE", "").split(), re.sub(r" \(.*\)", "", row).split(), strict=False))
    assert (cells["VERSION"], cells["REGION"], cells["NODES"]) == ("v1.35.0", "eu-central", "3")
    (item,) = yaml.safe_load(fedctl(server, "clusters", "-o", "yaml").stdout)
    assert item["metadata"]["name"] == "east"


def test_one_cluster_is_shown_in_detail(server: Parts) -> None:
    text = fedctl(server, "clusters", "east").stdout
    fields = dict(line.strip().split(": ", 1) for line in text.split("\n\n")[0].splitlines())
    shown = {name: text.strip() for name, text in fields.items()}
    assert (shown["version"], shown["region"], shown["taints"]) == ("v1.35.0", "eu-central", "gpu=true:NoSchedule")
    assert shown["address"] == "https://east"
    assert "cpu       48        47.5" in text
    assert "Ready            False" in text
    assert fedctl(server, "clusters", "east", "-o", "name").stdout == "federatedcluster.core.kubeadmiral.io/east\n"
    assert (
        str(fedctl(server, "clusters", "west").exception)
        == 'federatedclusters.core.kubeadmiral.io "west" not found; did you mean east?'
    )


def test_a_state_that_was_not_written_for_long_is_marked() -> None:
    now = from_rfc3339("2026-01-01T01:00:00Z")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}

    def shown(probed: str) -> str:
        conditions = [{"type": "Joined", "status": "True"}, {**ready, "lastProbeTime": probed}]
        cluster = {
            "metadata": {"name": "east", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {},
            "status": {"conditions": conditions},
        }
        return "|".join(clusterviews._row(cluster, now, separator=",", is_wide=False)[:3])

    assert shown("2026-01-01T00:51:00Z") == "east|Ready|1h"
    assert shown("2026-01-01T00:49:00Z") == "east|Ready (not probed for 11m)|1h"


def test_taints_are_added_and_removed(server: Parts) -> None:
    steps = {
        ("cordon", "east"): "cordoned",
        ("uncordon", "east"): "uncordoned",
        ("taint", "east", "a=b:NoExecute"): "tainted",
        ("taint", "east", "a:NoExecute-"): "tainted",
        ("taint", "east", "gpu=true:NoSchedule"): "unchanged",
    }
    for arguments, expected in steps.items():
        result = fedctl(server, *arguments)
        assert result.exit_code == 0, result.output
        assert result.stdout == f'cluster "east" {expected}\n'
    assert "gpu=true:NoSchedule" in fedctl(server, "clusters").stdout
    refused = fedctl(server, "taint", "east", "a-")
    assert refused.exit_code != 0
    assert "the cluster has no taint a" in str(refused.exception)


def test_clusters_are_printed_as_json(server: Parts) -> None:
    (cluster,) = orjson.loads(fedctl(server, "clusters", "-o", "json").stdout)
    assert cluster["metadata"]["name"] == "east"


@pytest.mark.parametrize("target", ["deployment/web", "deploy/web", "deployments/web", "Deployment.apps/web"])
def test_why_explains_every_cluster(server: Parts, target: str) -> None:
    result = fedctl(server, "why", target)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "deployment/web in default: Scheduled" in text
    assert "PropagationPolicy default/divide" in text
    rows = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert rows["east"].split()[1:3] == ["3", "1"]
    assert "rejected by TaintToleration: had untolerated taint [gpu]" in rows["west"]
    assert "east 3, north 1" in text
    assert "ignored   annotation kubeadmiral.io/placements: its value cannot be understood" in text
    assert "stays     in west: the pods of a StatefulSet must not run twice" in text
    assert "can run    north 1" in text
    assert "region: eu 3, us 1; skew 0 (maxSkew 1, minDomains 3, DoNotSchedule)" in text
    assert "2 in clusters without this label" in text
    assert "not counted, because unready or tainted: us" in text
    assert "not counted, because policy or user exclude them: ap" in text
    assert "1. hold       until others run east 1\n" in text
    assert "2. scale up   difference 2; replicas east 1, north 1\n" in text
    assert "minimums" not in text
    assert "5 unplaced because of maxSkew 1 of topology key region" in text


def test_many_clusters_with_the_same_rejection_are_counted(server: Parts) -> None:
    lines = fedctl(server, "why", "deployment/wide").stdout.splitlines()
    rejected = [line for line in lines if "rejected by PlacementFilter: not in the list" in line]
    assert [line.split()[0] for line in rejected[:2]] == ["c000", "c001"]
    assert (len(rejected), rejected[-1].split()[:2]) == (11, ["70", "more"])
    assert any(line.startswith("c080 ") and "unchanged" in line for line in lines)


def test_after_a_failure_the_table_shows_the_kept_placements(server: Parts) -> None:
    text = fedctl(server, "why", "deployment/failed").stdout
    rows = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert rows["east"].split(maxsplit=4)[1:] == ["3", "3", "200", "available (cost 5 * 20); unchanged"]
    assert rows["north"].split(maxsplit=4)[1:] == ["-", "-", "150", "available (cost 5 * 10)"]
    assert rows["stays"] == "  stays     east 3"


def test_why_takes_kind_and_name_as_kubectl_does(server: Parts) -> None:
    assert fedctl(server, "why", "deploy", "web").stdout.startswith("deployment/web in default: Scheduled\n")


def test_scores_shared_by_all_clusters_are_printed_once(server: Parts) -> None:
    text = fedctl(server, "why", "deployment/scored").stdout
    rows = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert rows["east"].endswith("selected (cost 5 * 20)")
    assert rows["north"].endswith("available, not selected (cost 5 * 10)")
    assert rows["same"] == "same for all: TaintToleration 100"
    assert rows["mode"] == "  mode      Duplicate; the policy says Divide, but nothing is divided"


COMMANDS = (
    "demo",
    "up",
    "serve",
    "join",
    "unjoin",
    "clusters",
    "leftovers",
    "holds",
    "approve",
    "undo",
    "why",
    "convert",
    "plan",
    "apply-plan",
    "queue",
    "topology",
    "topology plan",
    "topology check",
    "kubeconfig",
    "version",
)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns_and_names_the_values(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = fedctl(None, *command.split(), "--help").stdout
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "\\b" not in text
    examples = [line for line in text.splitlines() if line.startswith(f"  fedctl {command} ")]
    assert len(examples) == {
        "join": 5,
        "undo": 2,
        "why": 5,
        "queue": 3,
        "plan": 4,
        "topology plan": 2,
        "convert": 1,
        "clusters": 2,
    }.get(command, 0)
    options = [line for line in text.splitlines() if line.lstrip().startswith("-")]
    assert [line for line in options if "<" in line.partition("--")[2].partition("  ")[0]] == []


def test_the_help_lists_every_command_once_under_a_heading() -> None:
    sections = get_command(app).sections  # type: ignore[attr-defined]  # it is a table
    names = [name for listed in sections.values() for name in listed]
    assert len(names) == len(set(names))
    text = CliRunner().invoke(app, ["--help"]).stdout
    assert [title for title in sections if f"{title}:\n" in text] == list(sections)


def test_the_table_has_the_first_sentence_of_each_command() -> None:
    group: Any = get_command(app)
    for listed in group.sections.values():
        for name, (_, sentence) in listed.items():
            command = group.get_command(None, name)
            assert command.name == name
            assert " ".join(command.help.partition("\n\n")[0].split()) == sentence


def test_why_shows_the_decision_in_force_after_a_deferred_one(server: Parts) -> None:
    text = fedctl(server, "why", "deployment/held").stdout
    assert text.startswith("deployment/held in default: Scheduled\n")
    assert "since     labels of clusters changed and a cluster joined; the policy does not follow that" in text
    assert "in force is this earlier decision" not in text
    rows = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert rows["east"].split()[1:3] == ["4", "-"]


def test_the_diff_of_a_deferred_decision_has_only_its_reason(server: Parts) -> None:
    lines = fedctl(server, "why", "deployment/held", "--diff").stdout.splitlines()
    assert {line.split()[0] for line in lines[1:]} == {"decided", "changed", "outcome", "reason", "stays"}


def test_why_notes_that_the_object_was_deleted(server: Parts) -> None:
    assert "gone      the object no longer exists" in fedctl(server, "why", "deployment/web").stdout


def test_lines_have_no_trailing_spaces(server: Parts) -> None:
    for command in (("why", "deployment/web"), ("why", "deployment/web", "--diff"), ("clusters",)):
        lines = fedctl(server, *command).stdout.splitlines()
        assert [line for line in lines if line != line.rstrip()] == []


def test_why_prints_the_record_as_json(server: Parts) -> None:
    record = orjson.loads(fedctl(server, "why", "deploy/web", "-o", "json").stdout)
    assert record["explanation"] == _EXPLANATION


def test_why_shows_the_decision_in_force_at_a_time(server: Parts) -> None:
    moment = to_rfc3339(NOW - timedelta(hours=1))
    text = fedctl(server, "why", "deployment/web", "--at", moment).stdout
    assert "reason    2/2 clusters are available" in text
    early = fedctl(server, "why", "deployment/web", "--at", to_rfc3339(NOW - timedelta(days=1)))
    assert "no decision from before that time is recorded" in str(early.exception)
    wrong = fedctl(server, "why", "deployment/web", "--at", "noon")
    assert str(wrong.exception).startswith("--at 'noon': write a time with its zone")


def test_why_compares_with_the_previous_decision(server: Parts) -> None:
    lines = fedctl(server, "why", "deployment/web", "--diff").stdout.splitlines()
    assert any(line.split() == ["replicas", "1", "→", "4"] for line in lines)
    rows = {line.split()[0]: line for line in lines if line.split()}
    assert "1 → 3" in rows["east"]
    assert "more replicas" in rows["east"]
    assert "joined; selected" in rows["north"]
    assert "rejected by TaintToleration: had untolerated taint [gpu]" in rows["west"]
    whole = yaml.safe_load(fedctl(server, "why", "deployment/web", "--diff", "-o", "yaml").stdout)
    assert whole["before"]["explanation"]["placements"] == {"east": 1}
    assert {change["name"] for change in whole["difference"]["clusters"]} == {"east", "north", "west"}
    alone = fedctl(server, "why", "deployment/alone", "--diff")
    assert str(alone.exception) == "deployment/alone: no earlier decision to compare with is recorded"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("web", "write KIND/NAME"),
        ("deployment/", "write KIND/NAME"),
        ("deployment/other", "deployment/other in namespace default does not exist"),
        ("fcluster/east", "federatedcluster/east is not federated: no FederatedTypeConfig covers its kind"),
        ("gadget/web", "the server has no kind 'gadget'"),
    ],
)
def test_why_rejects_an_invalid_target(server: Parts, target: str, message: str) -> None:
    result = fedctl(server, "why", target)
    assert isinstance(result.exception, ConfigurationError)  # `main` makes one line of it
    assert message in str(result.exception)


def test_wrong_usage_exits_with_code_2(tmp_path: Path) -> None:
    assert fedctl(None, "clusters", "-o", "xml").exit_code == 2
    assert fedctl(None, "why", "deployment/web", "-o", "xml").exit_code == 2
    assert fedctl(None, "up", "--dir", str(tmp_path), "--log-format", "xml").exit_code == 2
    assert fedctl(None, "nonsense").exit_code == 2


def test_a_fleet_that_cannot_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    many = fedctl(None, "up", "--dir", str(tmp_path / "many"), "--members", "101")
    assert many.exit_code == 1
    assert "at most 100 members can have a process each; add --light" in str(many.exception)

    (tmp_path / "old" / "members").mkdir(parents=True)
    again = fedctl(None, "up", "--dir", str(tmp_path / "old"), "--light")
    assert again.exit_code == 1
    assert "holds an earlier fleet, and light members keep nothing" in str(again.exception)
    assert not (tmp_path / "old" / "state.db").exists()


def test_the_version_is_printed() -> None:
    assert fedctl(None, "version").stdout == f"{__version__}\n"


def test_kubeconfig_prints_the_path_or_an_error(server: Parts) -> None:
    folder = str(server.kubeconfig.parent)
    assert fedctl(None, "kubeconfig", "--dir", folder).stdout == f"{server.kubeconfig}\n"
    assert fedctl(None, "kubeconfig", "--raw", "--dir", folder).stdout == server.kubeconfig.read_text()
    missed = fedctl(None, "kubeconfig", "--dir", f"{folder}/none").exception
    assert isinstance(missed, ConfigurationError)
    assert "does not exist" in str(missed)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (3599, "59m"), (3600, "1h"), (86399, "23h"), (86400, "1d"), (200000, "2d")],
)
def test_ages_have_one_unit(seconds: int, text: str) -> None:
    assert to_age(NOW + timedelta(seconds=seconds), NOW) == text


def test_an_empty_cluster_is_drained_at_once_and_a_preview_changes_nothing(server: Parts) -> None:
    client = LocalClient(server.registry)

    def taints() -> list[str]:
        cluster = server.run(client.get(FEDERATED_CLUSTERS, "east"))
        return [f"{taint['key']}:{taint['effect']}" for taint in cluster["spec"].get("taints") or ()]

    before = taints()
    assert fedctl(server, "drain", "east", "--dry-run").exit_code == 0
    assert taints() == before
    result = fedctl(server, "drain", "east", "--timeout", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == 'cluster "east" is drained'
    assert taints() == [*before, f"{names.TAINT_DRAIN}:NoExecute"]
    fedctl(server, "uncordon", "east")
    assert taints() == before


def test_a_hold_is_listed_and_approved_once(server: Parts) -> None:
    assert fedctl(server, "holds").stdout == "nothing is held\n"
    hold = {
        "apiVersion": PLACEMENT_HOLDS.api_version,
        "kind": "PlacementHold",
        "metadata": {"name": "web-1"},
        "spec": {"cause": "PropagationPolicy default/web", "count": 30, "objects": ["Deployment default/web"]},
    }
    server.run(LocalClient(server.registry).create(PLACEMENT_HOLDS, hold))
    listed = fedctl(server, "holds").stdout
    for text in ("web-1", "PropagationPolicy default/web", "30", "Deployment default/web and 29 more"):
        assert text in " ".join(listed.split())

    approved = fedctl(server, "approve", "web-1", "--reason", "planned")
    assert approved.stdout == "approved: 30 objects of PropagationPolicy default/web move now\n", approved.output
    assert "approved by" in fedctl(server, "holds").stdout
    again = fedctl(server, "approve", "web-1", "--reason", "planned")
    assert isinstance(again.exception, ConfigurationError)
    assert fedctl(server, "approve", "web-1", "--reason", " ").exit_code == 2


POLICY = Cause("PropagationPolicy", "default", "web")


async def _moved(server: Parts, name: str, at: datetime, cause: Cause = POLICY) -> None:
    """Create a Deployment and its federated object, which was moved."""
    client = LocalClient(server.registry)
    await client.create(DEPLOYMENTS, a_deployment(name))
    move = PastMove(to_rfc3339(at), (cause,), {"east": None})
    federated = {
        "apiVersion": FEDERATED_OBJECTS.api_version,
        "kind": "FederatedObject",
        "metadata": {
            "name": f"{name}-deployments.apps",
            "namespace": "default",
            "annotations": {names.PREVIOUS_PLACEMENT: past_text(move)},
        },
        "spec": {"template": a_deployment(name)},
    }
    await client.create(FEDERATED_OBJECTS, federated)


def test_undo_of_a_namespace_restores_what_moved_with_it_only(server: Parts) -> None:
    now = datetime.now(UTC)
    server.run(_moved(server, "inside", now, Cause("Namespace", "", "default")))
    server.run(_moved(server, "outside", now, Cause("Namespace", "", "elsewhere")))
    done = fedctl(server, "undo", "namespace/default", "--timeout", "1")
    assert done.stdout == "Deployment default/inside: not restored within 1 s; its events say why\n"
    client = LocalClient(server.registry)
    for name, is_asked in (("inside", True), ("outside", False)):
        deployment = server.run(client.get(DEPLOYMENTS, name, "default"))
        assert (names.UNDO in (deployment["metadata"].get("annotations") or {})) is is_asked
    unmoved = fedctl(server, "undo", "namespace/kube-system")
    assert "Namespace kube-system: no move is recorded" in str(unmoved.exception)


def test_undo_asks_for_the_last_move_and_says_when_it_cannot(server: Parts) -> None:
    now = datetime.now(UTC)
    server.run(_moved(server, "recent", now - timedelta(minutes=5)))
    server.run(_moved(server, "old", now - timedelta(hours=2)))
    late = fedctl(server, "undo", "deploy/old")
    assert isinstance(late.exception, ConfigurationError)
    assert "more than 1 h ago" in str(late.exception)
    never = fedctl(server, "undo", "deployment/nothing")
    assert "no move is recorded" in str(never.exception)

    # No control plane runs here, so nothing is restored; the request is made for the recent one only.
    asked = fedctl(server, "undo", "deployment/recent", "--timeout", "1")
    assert asked.exit_code == 1
    assert asked.stdout == "Deployment default/recent: not restored within 1 s; its events say why\n"
    client = LocalClient(server.registry)
    for name, is_asked in (("recent", True), ("old", False)):
        deployment = server.run(client.get(DEPLOYMENTS, name, "default"))
        assert (names.UNDO in (deployment["metadata"].get("annotations") or {})) is is_asked


def test_registration_tokens_are_listed_and_deleted(server: Parts) -> None:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.SYSTEM_NAMESPACE}}
    server.run(LocalClient(server.registry).create(NAMESPACES, system))
    assert fedctl(server, "token", "list").stdout.startswith("no registration tokens; make one with")
    fedctl(server, "token", "create", "site", "--labels", "region=eu", "--taints", "gpu=yes:NoSchedule")
    heading, row = fedctl(server, "token", "list").stdout.splitlines()
    assert heading.split() == ["TOKEN", "CLUSTER", "STATE", "LABELS", "TAINTS"]
    token, *rest = row.split()
    assert (rest[:3], rest[4:]) == (["site", "expires", "in"], ["region=eu", "gpu=yes:NoSchedule"])
    assert fedctl(server, "token", "delete", token).stdout.startswith(f"token {token} deleted")
    again = fedctl(server, "token", "delete", token).exception
    assert isinstance(again, ConfigurationError)
    assert str(again).startswith(f"there is no token {token};")
