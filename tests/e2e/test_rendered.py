"""`fedctl render` and `diff` with a real federation: what is applied, and how a member differs from it."""

import itertools
import json
from collections.abc import Iterator

import pytest
import yaml

from tests.support.federation import Federation, eventually, fedctl, federation
from tests.support.manifests import a_deployment, a_policy, an_override

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("rendered")]
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with federation(tmp_path_factory.mktemp("rendered") / "fed") as running:
        yield running


def run(fed: Federation, *arguments: str, code: int = 0) -> str:
    done = fedctl(*arguments, check=False, KUBECONFIG=str(fed.kubectl.kubeconfig))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_render_and_diff_show_what_is_applied_and_what_a_member_changed(fed: Federation) -> None:
    image = "/spec/template/spec/containers/0/image"
    fed.kubectl.apply(
        a_policy({"member-1": 1, "member-2": 1}),
        an_override("member-2", image, "nginx:1"),
        a_deployment("web", replicas=4),
    )
    eventually(
        lambda: fedctl("diff", "deploy/web", check=False, KUBECONFIG=str(fed.kubectl.kubeconfig)).returncode,
        lambda code: code == 0,
        what="members without a difference",
    )
    manifest = yaml.safe_load(run(fed, "render", "deployment/web", "--cluster", "member-2"))
    assert manifest["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"
    assert manifest["spec"]["replicas"] == 2
    assert json.loads(run(fed, "render", "deploy", "web", "--cluster", "member-2", "-o", "json")) == manifest
    assert "is not placed in member-3; it is in member-1, member-2" in run(
        fed, "render", "deploy/web", "--cluster", "member-3", code=1
    )
    # A change by hand is repaired at once, except where the member's administrator takes the object over.
    fed.member("member-1")("label", "deploy", "web", "kubeadmiral.io/managed=false", "--overwrite")
    fed.kubectl("scale", "deploy", "web", "--replicas=6")
    printed = eventually(
        lambda: fedctl("diff", "deploy/web", check=False, KUBECONFIG=str(fed.kubectl.kubeconfig)).stdout,
        lambda seen: "ManagedLabelFalse" in seen and "member-2" not in seen,
        what="the difference in member-1",
    )
    assert printed.startswith("member-1\n")
    assert "+  replicas: 3" in printed
    run(fed, "diff", "deploy/web", code=1)
    run(fed, "diff", "deploy/web", "--cluster", "member-2")
    assert "\033[" not in printed, "colours are for terminals"
    assert "placed nowhere" in run(fed, "diff", "deploy/other", code=2)
