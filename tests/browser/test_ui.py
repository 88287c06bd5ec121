"""The web UI in headless Chromium: log-in, rights, live pages, a restart, accessibility, and the security policy."""

import json
from collections.abc import Mapping, Sequence

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import DECISION, LOOKS, OBJECT, Look, Site, check_look, show_as, watch_for_faults
from tests.support.federation import fedctl, start_federation

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a browser"), pytest.mark.xdist_group("browser")]
expect.set_options(timeout=90_000)
SCREENS = {
    "login": "/ui/login",
    "overview": "/ui/overview",
    "objects": "/ui/objects",
    "object": OBJECT,
    "policies": "/ui/policies",
    "policy": "/ui/objects/core.kubeadmiral.io/v1alpha1/propagationpolicies/default/divide-nginx",
    "rules": "/ui/rules",
    "rule": "/ui/objects/core.kubeadmiral.io/v1alpha1/changefreezes/-/sale",
    "namespaces": "/ui/namespaces",
    "graph": f"{OBJECT}/graph",
    "fleet": "/ui/fleet",
    "cluster": "/ui/fleet/member-1",
    "attention": "/ui/attention",
    "decisions": "/ui/decisions",
    "timeline": "/ui/timeline",
    "map": "/ui/map",
    "decision": DECISION,
    "diff": f"{OBJECT}/diff",
}

FREEZE: Mapping[str, object] = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "ChangeFreeze",
    "metadata": {"name": "sale"},
    "spec": {
        "reason": "a sale that is over",
        "windows": [{"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}],
    },
}
"""A rule that holds nothing any more."""
MORE: tuple[Look, ...] = (("dark", 1280), ("light", 390))
"""Colours do not depend on the width, nor the layout on colours: these are for `make test-all`."""


def test_a_one_time_link_logs_in_and_log_out_ends_the_session(site: Site, page: Page) -> None:
    page.goto(f"{site.url}{OBJECT}")
    expect(page).to_have_url(f"{site.url}/ui/login?next=%2Fui%2Fobjects%2Fapps%2Fv1%2Fdeployments%2Fdefault%2Fnginx")
    printed = fedctl("ui", "--kubeconfig", str(site.running.kubectl.kubeconfig)).stdout.splitlines()
    page.goto(printed[0])
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("link", name="nginx").first).to_be_visible()
    expect(page.locator(".user")).to_have_text("federation-admin")
    cookies = page.context.cookies()
    assert [(each["httpOnly"], each["secure"], each["sameSite"]) for each in cookies] == [(True, True, "Strict")]
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/ui/login")
    page.goto(f"{site.url}/ui/fleet")
    expect(page.get_by_label("Bearer token")).to_be_visible()


def test_a_viewer_sees_neither_secrets_nor_other_namespaces(site: Site, page: Page) -> None:
    kubectl = site.running.kubectl
    kubectl("create", "namespace", "team-a")
    kubectl("create", "serviceaccount", "viewer", "-n", "team-a")
    kubectl("create", "rolebinding", "viewer", "-n", "team-a", "--clusterrole=view", "--serviceaccount=team-a:viewer")
    kubectl("create", "configmap", "visible", "-n", "team-a")
    kubectl("create", "secret", "generic", "hidden", "-n", "team-a", "--from-literal=password=topsecret")
    kubectl("label", "configmap/visible", "secret/hidden", "-n", "team-a", "kubeadmiral.io/propagation-policy-name=p")
    page.goto(f"{site.url}/ui/login")
    page.get_by_label("Bearer token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
    page.get_by_label("Bearer token").fill(kubectl("create", "token", "viewer", "-n", "team-a").strip())
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/ui/overview")
    assert "nginx" not in page.inner_text("body")
    site.open(page, "/ui/objects")
    expect(page.get_by_role("link", name="visible")).to_be_visible()  # what is in her namespace
    page.get_by_label("Namespace").fill("team-a")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="visible")).to_be_visible()
    for path in ("/ui/objects?namespace=team-a", "/ui/objects", "/ui/attention?namespace=team-a"):
        page.goto(site.url + path)
        text = page.inner_text("body")
        assert "hidden" not in text.replace("not shown", "")
        assert "nginx" not in text
        assert "topsecret" not in page.content()
    page.goto(f"{site.url}/ui/decisions?namespace=team-a")
    expect(page.locator(".timeline").get_by_text("visible")).to_be_visible()
    assert "hidden" not in page.inner_text(".timeline")
    for path in (
        OBJECT,
        DECISION,
        "/ui/decisions?namespace=default",
        "/ui/objects/core/v1/secrets/team-a/hidden",
        "/ui/fleet",
        "/ui/fleet/member-1",
    ):
        answer = page.goto(site.url + path)
        assert answer is not None
        assert answer.status == 403
        expect(page.get_by_role("heading", name="You lack the permission for this page")).to_be_visible()


def test_no_page_shows_the_value_of_a_secret(site: Site, page: Page) -> None:
    site.running.kubectl("create", "secret", "generic", "own", "--from-literal=password=topsecret")
    site.log_in(page)
    page.goto(f"{site.url}/ui/objects/core/v1/secrets/default/own")
    expect(page.get_by_role("heading", name="own")).to_be_visible()
    for text in ("topsecret", "dG9wc2VjcmV0"):
        assert text not in page.content()


def test_the_tree_of_an_object_is_live(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, OBJECT)
    for text in ("divide-nginx", "regional-nginx", "member-1", "member-2", "member-3"):
        expect(page.get_by_text(text, exact=True).first).to_be_visible()
    expect(page.locator(".title .count")).to_have_text("8 / 8")
    expect(page.locator(".pods li")).to_have_count(8)
    page.evaluate("window.isFirstLoad = true")
    site.running.kubectl("scale", "deployment/nginx", "--replicas=11")
    expect(page.locator(".title .count")).to_have_text("11 / 11")
    expect(page.locator(".pods li")).to_have_count(11)
    assert page.evaluate("window.isFirstLoad"), "the page was updated, not loaded again"
    site.running.kubectl("scale", "deployment/nginx", "--replicas=8")
    expect(page.locator(".title .count")).to_have_text("8 / 8")


def test_the_fleet_is_live_filtered_and_leads_to_what_runs_in_a_cluster(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, "/ui/fleet")
    expect(page.locator(".card")).to_have_count(3)
    patch = {"spec": {"taints": [{"key": "example.com/maintenance", "effect": "NoSchedule"}]}}
    site.running.kubectl("patch", "federatedcluster/member-2", "--type=merge", "-p", json.dumps(patch))
    expect(page.locator(".card", has_text="member-2").locator(".tag.warn")).to_contain_text("example.com/maintenance")
    page.get_by_label("Name, label or taint").fill("maintenance")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".card")).to_have_count(1)
    assert "q=maintenance" in page.url
    site.running.kubectl("patch", "federatedcluster/member-2", "--type=merge", "-p", '{"spec": {"taints": []}}')
    expect(page.get_by_text("No cluster matches the filter.")).to_be_visible()
    site.open(page, "/ui/fleet")
    page.get_by_role("link", name="member-1").click()
    expect(page.get_by_role("heading", name="member-1")).to_be_visible()
    expect(page.get_by_role("row", name="nginx").first).to_be_visible()


def test_what_has_no_place_needs_attention_until_it_is_gone(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, "/ui/attention")
    kubectl = site.running.kubectl
    kubectl("create", "deployment", "nowhere", "--image=nginx")
    kubectl("label", "deployment/nowhere", "kubeadmiral.io/propagation-policy-name=missing")
    problem = page.locator(".concerns li", has_text="nowhere")
    expect(problem.get_by_text("Not placed", exact=True)).to_be_visible()
    page.get_by_role("link", name="Not placed").click()
    expect(problem).to_be_visible()
    page.wait_for_selector("#live-state[data-state=on]")
    problem.get_by_role("link", name="1 object").click()
    problem = page.locator("tbody tr", has_text="nowhere")
    expect(problem).to_be_visible()
    page.wait_for_selector("#live-state[data-state=on]")
    kubectl("delete", "deployment/nowhere")
    expect(problem).to_have_count(0)


def test_decisions_are_a_live_time_line_with_reasons_scores_and_differences(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, "/ui/decisions?kind=Deployment&name=nginx")
    entries = page.locator(".timeline > li")
    before = entries.count()
    site.running.kubectl("scale", "deployment/nginx", "--replicas=12")
    expect(entries).to_have_count(before + 1)
    expect(entries.first).to_contain_text("changed: replicas")
    page.get_by_role("link", name="nginx").first.click()
    expect(page.get_by_text("Divide, 12 replicas")).to_be_visible()
    expect(page.get_by_role("img", name="Score of member-1")).to_be_visible()
    expect(page.locator("#difference ~ dl")).to_contain_text("8 → 12")
    address, history = page.url, page.locator(".history .timeline > li")
    known = history.count()
    site.running.kubectl("scale", "deployment/nginx", "--replicas=8")
    expect(history).to_have_count(known + 1)
    expect(page.get_by_text("Divide, 12 replicas")).to_be_visible()
    assert page.url == address, "the address of a decision stays valid"
    page.locator(".history a").first.click()
    expect(page.get_by_text("Divide, 8 replicas")).to_be_visible()
    site.open(page, "/ui/decisions?cluster=none-of-them")
    expect(page.get_by_text("No decision that you may read matches")).to_be_visible()


def test_the_differences_of_a_member_are_live_and_name_their_author(site: Site, page: Page) -> None:
    kubectl, member = site.running.kubectl, site.running.member("member-1")
    kubectl("annotate", "deployment/nginx", "kubeadmiral.io/retain-replicas=true")
    try:
        site.log_in(page)
        site.open(page, OBJECT)
        page.get_by_role("link", name="Differences").click()
        panel = page.locator(".panel", has_text="member-1")
        expect(panel.get_by_text("As wanted", exact=True)).to_be_visible()
        member("scale", "deployment/nginx", "--replicas=7")
        kept = panel.locator("tr", has_text="spec.replicas")
        expect(kept).to_contain_text("kubectl")
        expect(kept.locator("del")).to_have_text("7")
        expect(panel.get_by_text("leaves the replicas to the cluster")).to_be_visible()
    finally:
        kubectl("annotate", "deployment/nginx", "kubeadmiral.io/retain-replicas-")


def test_a_page_is_live_again_after_a_restart(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, OBJECT)
    directory = site.running.directory
    site.running.close()
    expect(page.locator("#live-state")).to_have_text("Reconnecting")
    site.running = start_federation(directory, arguments=["--port", site.port])
    expect(page.locator("#live-state")).to_have_text("Live")
    site.running.kubectl("scale", "deployment/nginx", "--replicas=9")
    expect(page.locator(".title .count")).to_have_text("9 / 9")
    site.running.kubectl("scale", "deployment/nginx", "--replicas=8")
    expect(page.locator(".title .count")).to_have_text("8 / 8")


@pytest.mark.parametrize("looks", [LOOKS, pytest.param(MORE, marks=pytest.mark.nightly)], ids=["looks", "more"])
def test_every_screen_is_accessible_and_keeps_to_its_policy(site: Site, page: Page, looks: Sequence[Look]) -> None:
    faults = watch_for_faults(page)
    site.running.kubectl("apply", "-f", "-", stdin=json.dumps(FREEZE))
    site.log_in(page)
    for name, path in SCREENS.items():
        if name == "login":
            page.goto(site.url + path)
        else:
            site.open(page, path)
        for look in looks:
            show_as(page, look)
            check_look(page, name)
    assert faults == []


def test_the_keyboard_reaches_the_content_first(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, "/ui/objects")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Namespaces")).to_be_focused()
