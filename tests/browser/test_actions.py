"""Actions of the web UI in headless Chromium: what each shows and does, rights, failures, a restart, keys and search."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import LOOKS, OBJECT, Site, check_look, show_as, watch_for_faults
from tests.support.federation import eventually, start_federation

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a browser"), pytest.mark.xdist_group("browser")]
expect.set_options(timeout=90_000)
CLUSTER = "/ui/fleet/member-3"


def ask(page: Page, action: str) -> None:
    """Open the form of an action from its button, and ask for what it would do."""
    page.get_by_role("group", name="Actions").get_by_role("link", name=action, exact=True).click()
    page.wait_for_url("**/ui/act/**")


def preview(page: Page) -> None:
    page.get_by_role("button", name="Show what happens").click()
    expect(page.get_by_role("heading", name="What happens")).to_be_visible()


def confirm(page: Page, button: str) -> None:
    """Press the button until it is done: while pods move, what was shown is soon out of date, and is shown again."""
    done = page.get_by_role("status").filter(has_text="written")

    def press() -> bool:
        page.locator(".decide").get_by_role("button", name=button, exact=True).click()
        expect(done.or_(page.get_by_role("alert").filter(has_text="no longer what you saw"))).to_be_visible()
        return done.is_visible()

    eventually(press, bool, what=f"{button}: a result that has settled")


def field(site: Site, path: str, target: str = "deployment/nginx") -> str:
    return site.running.kubectl("get", target, "--output", f"jsonpath={{{path}}}")


def test_an_object_is_scaled_paused_labelled_and_edited_where_one_looks(site: Site, page: Page) -> None:
    faults = watch_for_faults(page)
    site.log_in(page)
    site.open(page, OBJECT)
    ask(page, "Scale")
    page.get_by_label("Replicas").fill("11")
    preview(page)
    expect(page.get_by_text("replicas start")).to_be_visible()
    assert field(site, ".spec.replicas") == "8"
    for look in LOOKS:
        show_as(page, look)
        check_look(page, "scale")
    confirm(page, "Scale")
    expect(page.locator(".title .count")).to_have_text("11 / 11")

    ask(page, "Pause")
    preview(page)
    confirm(page, "Pause")
    assert field(site, ".spec.paused") == "true"
    ask(page, "Resume")
    preview(page)
    confirm(page, "Resume")
    assert field(site, ".spec.paused") != "true"

    ask(page, "Labels")
    page.get_by_label("Labels").fill("app=nginx\ntier=front")
    preview(page)
    expect(page.locator(".patch .added").first).to_contain_text("tier: front")
    confirm(page, "Write the labels")
    assert field(site, ".metadata.labels.tier") == "front"

    ask(page, "Edit YAML")
    text = page.get_by_label("Manifest").input_value()
    page.get_by_label("Manifest").fill(text.replace("replicas: 11", "replicas: 8"))
    preview(page)
    expect(page.locator(".patch .removed").last).to_contain_text("replicas: 11")
    confirm(page, "Write it")
    expect(page.locator(".title .count")).to_have_text("8 / 8")

    ask(page, "Restart")
    preview(page)
    confirm(page, "Restart")
    assert field(site, ".spec.template.metadata.annotations.kubectl\\.kubernetes\\.io/restartedAt")
    assert faults == []


def test_a_cluster_is_drained_and_taken_back_and_an_object_deleted(site: Site, page: Page) -> None:
    kubectl = site.running.kubectl
    site.log_in(page)
    site.open(page, CLUSTER)
    ask(page, "Drain")
    preview(page)
    expect(page.locator(".outcome", has_text="nginx").first.locator("tr", has_text="member-3")).to_be_visible()
    confirm(page, "Drain")
    expect(page.locator(".tag.warn", has_text="drain")).to_be_visible()
    ask(page, "Uncordon")
    preview(page)
    confirm(page, "Uncordon")
    expect(page.locator(".tag.warn")).to_have_count(0)

    kubectl("create", "configmap", "old")
    kubectl("label", "configmap/old", "kubeadmiral.io/propagation-policy-name=copy-nginx")
    page.goto(f"{site.url}/ui/objects/core/v1/configmaps/default/old")
    ask(page, "Delete")
    page.get_by_label("Name, to confirm: old").fill("new")
    page.get_by_role("button", name="Show what happens").click()
    expect(page.get_by_role("alert")).to_contain_text("write old to delete it")
    page.get_by_label("Name, to confirm: old").fill("old")
    preview(page)
    confirm(page, "Delete")
    kubectl("wait", "configmap/old", "--for=delete", "--timeout=60s")


def test_a_change_of_somebody_else_and_a_refusal_are_told_and_nothing_is_done(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, OBJECT)
    ask(page, "Scale")
    page.get_by_label("Replicas").fill("10")
    preview(page)
    site.running.kubectl("annotate", "deployment/nginx", "example.com/note=changed", "--overwrite")
    page.locator(".decide").get_by_role("button", name="Scale").click()
    expect(page.get_by_role("alert")).to_contain_text("no longer what you saw")
    assert field(site, ".spec.replicas") == "8"
    page.goto(f"{site.url}/ui/act/yaml/apps/v1/deployments/default/nginx")
    text = page.get_by_label("Manifest").input_value()
    page.get_by_label("Manifest").fill(text.replace("restartPolicy: Always", "restartPolicy: Sometimes"))
    page.get_by_role("button", name="Show what happens").click()
    expect(page.get_by_role("alert")).to_contain_text("restartPolicy")
    expect(page.get_by_label("Manifest")).to_have_value(text.replace("Always", "Sometimes"))


def test_a_viewer_has_no_buttons_and_reads_logs(site: Site, page: Page) -> None:
    kubectl = site.running.kubectl
    kubectl("create", "serviceaccount", "reader")
    kubectl("create", "rolebinding", "reader", "--clusterrole=view", "--serviceaccount=default:reader")
    page.goto(f"{site.url}/ui/login")
    page.get_by_label("Bearer token").fill(kubectl("create", "token", "reader").strip())
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/ui/overview")
    site.open(page, OBJECT)
    expect(page.get_by_role("group", name="Actions")).to_have_count(0)
    page.goto(f"{site.url}/ui/act/scale/apps/v1/deployments/default/nginx")
    expect(page.get_by_text("You may not do this.")).to_be_visible()
    expect(page.get_by_role("button", name="Show what happens")).to_have_count(0)


def test_logs_of_a_pod_and_of_all_pods_of_a_workload(site: Site, page: Page) -> None:
    faults = watch_for_faults(page)
    site.log_in(page)
    site.open(page, OBJECT)
    page.locator(".pods a").first.click()
    expect(page.get_by_label("Log", exact=True)).to_contain_text("starting")
    for view in ("Events", "YAML", "Logs"):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()
        for look in LOOKS:
            show_as(page, look)
            check_look(page, view)
    page.get_by_label("follow").check()
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector("#live-state[data-state=on]")
    page.get_by_label("Lines with").fill("no such line")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No lines.")).to_be_visible()
    site.open(page, OBJECT)
    page.get_by_role("link", name="Logs").click()
    log = page.get_by_label("Log", exact=True)
    for cluster in ("member-1", "member-2"):
        expect(log.locator("b", has_text=cluster).first).to_be_visible()
    check_look(page, "logs")
    assert faults == []


def test_a_terminal_in_a_pod(site: Site, page: Page) -> None:
    faults = watch_for_faults(page)
    site.log_in(page)
    site.open(page, OBJECT)
    page.locator(".pods a").first.click()
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Terminal").click()
    expect(page.locator(".xterm")).to_have_count(0)  # nothing starts by itself
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("Connected.")).to_be_visible()
    page.keyboard.type("nosuch\n")
    screen = page.get_by_role("region", name="Terminal")
    expect(screen.get_by_text("not found").first).to_be_attached()
    for look in LOOKS:
        show_as(page, look)
        check_look(page, "terminal")
    page.keyboard.type("exit\n")
    expect(page.get_by_text("The command has ended.")).to_be_visible()
    assert faults == []


def test_an_action_goes_on_after_a_restart_of_the_control_plane(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, OBJECT)
    ask(page, "Scale")
    page.get_by_label("Replicas").fill("9")
    preview(page)
    directory = site.running.directory
    site.running.close()
    site.running = start_federation(directory, arguments=["--port", site.port])
    confirm(page, "Scale")
    expect(page.locator(".title .count")).to_have_text("9 / 9")
    site.running.kubectl("scale", "deployment/nginx", "--replicas=8")


def test_keys_and_the_search_lead_to_what_one_looks_for(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, "/ui/objects")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.keyboard.type("member-2")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="member-2").click()
    page.wait_for_url("**/ui/fleet/member-2")
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.wait_for_url("**/ui/objects")
    page.wait_for_selector("#live-state[data-state=on]")
    page.keyboard.press("j")
    expect(page.locator("tbody th a").first).to_be_focused()
    page.get_by_role("link", name="Object", exact=True).click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Object")
    page.keyboard.press("?")
    page.wait_for_url("**/ui/search")
    for look in LOOKS:
        show_as(page, look)
        check_look(page, "search")
    page.goto(f"{site.url}/ui/search?q=nginx")
    expect(page.locator(".concerns").get_by_role("link", name="nginx").first).to_be_visible()
    check_look(page, "hits")


def test_chosen_rows_stay_chosen_while_the_list_is_live_and_are_restarted_together(site: Site, page: Page) -> None:
    site.log_in(page)
    site.open(page, "/ui/objects?namespace=default&kind=Deployment")
    page.get_by_label("Choose Deployment nginx").check()
    site.running.kubectl("annotate", "deployment/nginx", "example.com/seen=yes")
    page.evaluate(
        "new Promise(done => { document.addEventListener('htmx:afterSettle', () => done(), {once: true});"
        " window.htmx.trigger('#live', 'changed'); })"
    )
    expect(page.get_by_label("Choose Deployment nginx")).to_be_checked()
    page.get_by_role("button", name="Restart").click()
    expect(page.get_by_role("heading", name="Restart 1 object")).to_be_visible()
    check_look(page, "bulk")
    page.locator(".decide").get_by_role("button", name="Restart").click()
    expect(page.get_by_role("status").filter(has_text="Restart:")).to_be_visible()
    written = site.running.kubectl(
        "get", "deployment/nginx", "--output", "jsonpath={.spec.template.metadata.annotations}"
    )
    assert "restartedAt" in written
