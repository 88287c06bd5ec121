"""Screens of the web UI that change something, in headless Chromium: approvals of what the guard holds."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import LOOKS, Site, accessibility_faults, check_look, show_as, watch_for_faults
from tests.support.federation import eventually, fedctl
from tests.support.vectors import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a browser"), pytest.mark.xdist_group("browser")]
expect.set_options(timeout=90_000)


def check_looks(site: Site, user: Page, name: str, path: str, *, is_live: bool = True) -> None:
    """Check accessibility, width and security policy of a screen that a user may see, on a desk and on a phone."""
    page = user.context.new_page()
    faults = watch_for_faults(page)
    if is_live:
        site.open(page, path)
    else:
        page.goto(site.url + path)
    for look in LOOKS:
        show_as(page, look)
        check_look(page, name)
    assert faults == []
    page.close()


def test_an_approval_in_the_browser_lets_the_held_deletion_go_on(site: Site, page: Page) -> None:
    kubectl = site.running.kubectl
    kubectl("create", "namespace", "shop")
    policy = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "claims", "namespace": "shop"},
        "spec": {
            "schedulingMode": "Duplicate",
            "placement": [{"cluster": "member-1"}],
            "resourceSelectors": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}],
        },
    }
    kubectl.apply(policy, *map(a_claim, range(11)))
    expect_claims(site, 11)
    kubectl("delete", "pvc", "--all", "--namespace", "shop", "--wait=false")
    site.log_in(page)
    site.open(page, "/ui/attention")
    page.get_by_role("link", name="Deletion of 11 PersistentVolumeClaims in namespace shop").click()
    expect(page.get_by_text("are deleted in all clusters, with the data in them")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(11)
    check_looks(site, page, "hold", page.url.removeprefix(site.url))
    page.get_by_label("Reason").fill("the shop has closed")
    page.get_by_role("button", name="Delete 11 PersistentVolumeClaims").click()
    approved = page.get_by_role("status").filter(has_text="Approved by federation-admin")
    expect(approved).to_contain_text("the shop has closed")
    expect(approved).to_contain_text("No object waits any more.")
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    expect_claims(site, 0)


def test_a_plan_shows_the_moves_before_they_happen_and_applies_just_them(
    site: Site, page: Page, tmp_path: Path
) -> None:
    kubectl = site.running.kubectl
    site.log_in(page)
    page.goto(f"{site.url}/ui/plan?cluster=member-3&action=drain")
    expect(page.get_by_label("Cluster", exact=True)).to_have_value("member-3")
    page.get_by_label("YAML or JSON").fill("kind: ConfigMap\n---\nkind: A\n b: 1\n")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_role("alert")).to_contain_text("apiVersion: Required value")
    manifest = tmp_path / "nginx.yaml"
    manifest.write_text((ROOT / "examples/quickstart/03-nginx.yaml").read_text().replace("replicas: 8", "replicas: 12"))
    page.get_by_label("Or from files").set_input_files(manifest)
    expect(page.get_by_label("YAML or JSON")).to_have_value(re.compile("replicas: 12"))
    page.get_by_role("button", name="Show the plan").click()
    moves = page.locator(".outcome", has_text="Deployment nginx")
    expect(moves.locator("tr", has_text="member-3").locator(".loss")).to_have_text("-2")
    assert kubectl("get", "deployment/nginx", "--output", "jsonpath={.spec.replicas}") == "8"
    assert accessibility_faults(page) == []
    # Somebody else changes what the plan was computed from.
    kubectl("annotate", "deployment/nginx", "example.com/note=changed")
    page.get_by_role("button", name="Apply this plan").click()
    expect(page.get_by_role("alert")).to_contain_text("no longer the plan that you saw")
    assert kubectl("get", "deployment/nginx", "--output", "jsonpath={.spec.replicas}") == "8"
    page.get_by_role("button", name="Apply this plan").click()
    expect(page.get_by_role("status")).to_contain_text("Applied.")
    kubectl("wait", "deployment/nginx", "--for=jsonpath={.status.readyReplicas}=12", "--timeout=90s")
    clusters = fedctl("why", "deployment/nginx", "--kubeconfig", str(kubectl.kubeconfig)).stdout
    assert "drain" in clusters
    kubectl("scale", "deployment/nginx", "--replicas=8")
    fedctl("uncordon", "member-3", "--kubeconfig", str(kubectl.kubeconfig))
    check_looks(site, page, "plan-form", "/ui/plan?cluster=member-1&action=drain", is_live=False)


def test_capacity_tells_which_cluster_can_be_lost_as_the_command_line_does(site: Site, page: Page) -> None:
    kubectl = site.running.kubectl
    kubectl("create", "namespace", "fixed")
    kubectl.apply(
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "fixed", "namespace": "fixed"},
            "spec": {
                "schedulingMode": "Divide",
                "placement": [{"cluster": "member-2"}],
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            },
        }
    )
    kubectl("create", "deployment", "payments", "--namespace", "fixed", "--image=nginx", "--replicas=3")
    member = site.running.member("member-2")
    eventually(
        lambda: member("get", "pods", "--namespace", "fixed", "--output", "name").split(), lambda got: len(got) == 3
    )
    site.log_in(page)
    site.open(page, "/ui/capacity")
    expect(page.locator("tbody tr", has_text="member-1")).to_contain_text("Can be lost")
    row = page.locator("tbody tr", has_text="member-2")
    expect(row).to_contain_text("3 of 6 replicas would find no room")
    expect(page.locator(".losses li", has_text="member-2").locator("rect.homeless")).to_have_count(1)
    check_looks(site, page, "capacity", "/ui/capacity")
    check_looks(site, page, "loss", "/ui/capacity?without=member-2")
    row.get_by_role("link", name="member-2").click()
    expect(page.get_by_role("heading", name="Can I lose member-2?")).to_be_visible()
    expect(page.locator("tbody tr", has_text="payments").locator(".loss")).to_have_text("3")
    printed = fedctl("capacity", "--without", "member-2", "--kubeconfig", str(kubectl.kubeconfig), check=False)
    assert printed.returncode == 1
    assert "without member-2, 3 of 6 replicas would find no room" in printed.stdout
    kubectl("delete", "deployment/payments", "--namespace", "fixed")


def test_a_wave_of_a_rollout_starts_when_its_button_is_pressed(site: Site, page: Page) -> None:
    kubectl = site.running.kubectl
    kubectl("create", "namespace", "waves")
    kubectl.apply(
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "waves", "namespace": "waves"},
            "spec": {
                "schedulingMode": "Divide",
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "placement": [{"cluster": name, "preferences": {"weight": 1}} for name in ("member-1", "member-2")],
                "rollout": {"waves": [{"name": "canary", "clusters": ["member-1"], "pause": True}]},
            },
        }
    )
    kubectl("create", "deployment", "web", "--namespace", "waves", "--image=nginx:1", "--replicas=4")
    kubectl("wait", "deployment/web", "--namespace", "waves", "--for=condition=Available", "--timeout=90s")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2", "--namespace", "waves")
    site.log_in(page)
    site.open(page, "/ui/rollouts?namespace=waves")
    page.get_by_role("link", name="web").click()
    expect(page.get_by_text("Waits for approval", exact=True)).to_be_visible()
    check_looks(site, page, "rollout", page.url.removeprefix(site.url))
    image = (
        "get",
        "deployment/web",
        "--namespace",
        "waves",
        "--output",
        "jsonpath={.spec.template.spec.containers[0].image}",
    )
    assert site.running.member("member-1")(*image) == "nginx:1"
    page.get_by_role("button", name="Pause: start no other wave").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Let wave canary start").click()
    expect(page.locator(".title .badge").first).to_have_text("Complete")
    assert site.running.member("member-1")(*image) == "nginx:2"
    check_looks(site, page, "rollouts", "/ui/rollouts")
    kubectl("delete", "deployment/web", "--namespace", "waves")


def a_claim(number: int) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{number}", "namespace": "shop"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def expect_claims(site: Site, count: int) -> None:
    """Wait until the first member has this number of claims of the shop."""
    api = site.running.api("shop", member="member-1")
    eventually(lambda: api.names("persistentvolumeclaims"), lambda names: len(names) == count, what=f"{count} claims")
