"""Credentials of the whole fleet: the kubeconfig of each member, and what is said of missing rights."""

from pathlib import Path

import pytest
import yaml

from federation.api import names
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.cli.clusterviews import missing_rights
from federation.cli.membership import load_administrator


def a_kubeconfig(path: Path, *contexts: str) -> Path:
    document = {
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}"}} for name in contexts],
        "contexts": [{"name": name, "context": {"cluster": name}} for name in contexts],
        "current-context": contexts[0],
    }
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("suffix", [".kubeconfig", ".yaml", ".yml", ".conf", ""])
def test_a_folder_has_a_file_for_each_member(tmp_path: Path, suffix: str) -> None:
    a_kubeconfig(tmp_path / f"east{suffix}", "any")
    assert load_administrator(tmp_path, "east").server == "http://any"
    with pytest.raises(ConfigurationError, match=r"has no file west\.kubeconfig; add"):
        load_administrator(tmp_path, "west")


def test_a_file_has_a_context_for_each_member(tmp_path: Path) -> None:
    file = a_kubeconfig(tmp_path / "all", "east", "west")
    assert load_administrator(file, "west").server == "http://west"
    with pytest.raises(ConfigurationError, match='has no "north"; there are: east, west'):
        load_administrator(file, "north")


def a_cluster(name: str, status: str, message: str = "") -> Object:
    condition = {"type": names.CLUSTER_AUTHORIZED, "status": status, "message": message}
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


def test_the_list_of_clusters_names_missing_rights_once_with_the_command_for_all() -> None:
    lacking = "lacks: jobs (get); grant them with: fedctl join --update-credentials {} --kubeconfig FILE"
    clusters = [a_cluster(name, "False", lacking.format(name)) for name in ("east", "west")]
    assert missing_rights([*clusters, a_cluster("fine", "True")]) == [
        "east, west: lacks: jobs (get); grant them with: fedctl join --update-credentials --all --kubeconfig FOLDER"
    ]
