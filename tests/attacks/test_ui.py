"""Attacks on the web UI: forged requests, markup in objects, addresses of other sites, sessions and links of others."""

from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest
from structlog.testing import capture_logs
from tests.scenarios.test_job_queues import a_cluster_queue, a_queue
from tests.support.apiserver import Parts
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import service_account
from tests.unit.web.test_delivery import served

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS
from federation.apiserver.auth.clientcertificates import Peer
from federation.journal.decisions import DecisionRecord
from federation.web.ui import login
from federation.web.ui.credentials import SESSION_S, Credentials, Sealer

OWN = {"origin": "https://api"}
MARKUP = "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>{{7*7}}"
PARAMETERS = ("hours", "region", "from", "q", "name", "namespace", "against", "cpu", "without", "taint", "manifests")
ADMIN = Peer("admin", ("system:masters",))


def logged_in(parts: Parts, credentials: Credentials, **headers: str) -> httpx.AsyncClient:
    """Return a browser with a session, without a client certificate."""
    browser = connect(parts.app, None, **headers)
    sealer = Sealer(parts.pki.token_key.read_bytes, ManualClock(start=datetime.now(UTC)))
    browser.cookies.set(login.COOKIE, sealer.seal("somebody", credentials), domain="api.local")
    return browser


@asynccontextmanager
async def browser_of_admin(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    async with logged_in(parts, Credentials(peer=ADMIN)) as browser:
        yield browser


async def token_of(admin: httpx.AsyncClient) -> str:
    """Return the token of a new service account."""
    account = await service_account(admin)
    path = f"/api/v1/namespaces/default/serviceaccounts/{account['metadata']['name']}/token"
    answer = await admin.post(path, json={"spec": {}})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["status"]["token"])


async def code_of_link(admin: httpx.AsyncClient) -> str:
    """Return the code of a new one-time link."""
    answer = await admin.post("/ui/links")
    assert answer.status_code == 201, answer.text
    return str(answer.json()["path"].partition("#")[2])


class Tags(HTMLParser):
    """Collects what a browser would run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.handlers: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in ("script", "img", "link", "iframe", "object", "embed", "style"):
            self.loaded.add(f"{tag} {found.get('src') or found.get('href') or ''}")
        self.handlers += [name for name in found if name.startswith("on") or name == "style"]
        self.handlers += [value for value in found.values() if value and value.lower().startswith("javascript:")]

    def handle_data(self, data: str) -> None:
        self.text += data


FRAME = {
    "img /ui/static/icon.svg",
    "link /ui/static/icon.svg",
    "link /ui/static/ui.css",
    "script /ui/static/htmx.min.js",
    "script /ui/static/ui.js",
}


WAITING = {"kind": MARKUP, "name": MARKUP, "position": 1, "waitsFor": MARKUP}
USE = {"flavor": MARKUP, "resource": MARKUP, "nominalQuota": "8", "used": "9", "borrowed": "1"}
QUEUE_STATUS: dict[str, Any] = {
    "JobQueue": {"pending": 2, "admitted": 1, "message": MARKUP, "waiting": [WAITING]},
    "ClusterJobQueue": {"pending": 2, "admitted": 1, "message": MARKUP, "usage": [USE]},
}
PROJECT = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "Project",
    "metadata": {"name": "shop"},
    "spec": {
        "namespaces": ["shop"],
        "clusters": {"names": ["east", MARKUP]},
        "members": [{"role": "edit", "subjects": [{"kind": "User", "name": MARKUP}]}],
    },
}
PROJECT_STATUS = {
    "clusters": [MARKUP],
    "leaving": [{"name": MARKUP, "objects": 2}],
    "conditions": [
        {"type": "Ready", "status": "False", "reason": "Forbidden", "message": MARKUP,
         "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ],
}  # fmt: skip
RULE = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "ClusterTaintPolicy",
    "metadata": {"name": "trouble"},
    "spec": {"clusters": [MARKUP], "taints": [{"key": "trouble", "effect": "NoSchedule"}]},
}
RULE_STATUS = {
    "active": 1, "problem": MARKUP,
    "clusters": [{"name": MARKUP, "state": "Active", "since": "2026-01-01T00:00:00Z"}],
}  # fmt: skip
SUSPENSION = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "DeliverySuspension",
    "metadata": {"name": "disk"},
    "spec": {"owner": MARKUP, "reason": MARKUP, "objects": [{"apiVersion": "v1", "kind": MARKUP, "name": MARKUP}]},
}
ROLLOUT = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "FederatedRollout",
    "metadata": {"name": "web"},
    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": MARKUP, "name": MARKUP}},
}
ROLLOUT_STATUS = {
    "state": MARKUP, "message": MARKUP, "failure": MARKUP, "policy": MARKUP, "progress": MARKUP,
    "waves": [{"name": MARKUP, "state": MARKUP, "clusters": [MARKUP]}],
    "clusters": [{"name": MARKUP, "wave": MARKUP, "message": MARKUP, "target": "t", "good": "g"}],
}  # fmt: skip
MARKED = (
    "/ui/objects/apps/v1/deployments/default/web/diff",
    "/ui/decisions",
    "/ui/decisions/apps/Deployment/default/web",
    f"/ui/decisions/apps/Deployment/default/{quote(MARKUP.replace('/', ''), safe='')}",
    "/ui/objects/apps/v1/deployments/default/web",
    "/ui/objects/apps/v1/deployments/default/web/graph",
    "/ui/fleet",
    "/ui/fleet/east",
    "/ui/overview",
    "/ui/bulk",
    "/ui/addcluster",
    "/ui/newpolicy",
    "/ui/timeline",
    "/ui/map",
    "/ui/policies",
    "/ui/rules",
    "/ui/objects/core.kubeadmiral.io/v1alpha1/clustertaintpolicies/-/trouble",
    "/ui/objects/core.kubeadmiral.io/v1alpha1/deliverysuspensions/default/disk",
    "/ui/namespaces",
    "/ui/objects/core.kubeadmiral.io/v1alpha1/propagationpolicies/default/divide",
    "/ui/attention",
    "/ui/objects",
    "/ui/capacity",
    "/ui/replay",
    "/ui/plan",
    "/ui/rollouts",
    "/ui/rollouts/default/web",
    "/ui/projects",
    "/ui/queues",
    "/ui/queues/default/team",
    "/ui/search",
    "/ui/objects/apps/v1/deployments/default/web/logs",
    "/ui/act/labels/apps/v1/deployments/default/web",
)
"""Pages that show what the test below writes; `test_ui_routes.py` has the list of screens without one."""


async def test_markup_in_objects_stays_text(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        deployment = a_deployment("web", replicas=1)
        deployment["metadata"].setdefault("annotations", {})["example.com/note"] = MARKUP
        await world.create(DEPLOYMENTS, deployment)
        await world.settle()
        added = {"metadata": {"labels": {"own": "true"}}}
        member = world.members["east"].admin
        await member.patch(DEPLOYMENTS, "web", added, namespace="default", field_manager=MARKUP[:28])
        source = await world.find(DEPLOYMENTS, "web")
        assert source is not None
        async with served(world, tmp_path) as (parts, admin), browser_of_admin(parts) as browser:
            event = {
                "metadata": {"name": "web.1", "namespace": "default"},
                "involvedObject": {
                    "kind": "Deployment", "apiVersion": "apps/v1", "name": "web", "namespace": "default",
                    "uid": source["metadata"]["uid"],
                },
                "reason": MARKUP[:100], "message": MARKUP, "type": "Normal",
            }  # fmt: skip
            assert (await admin.post("/api/v1/namespaces/default/events", json=event)).status_code == 201
            status = {"status": {"conditions": [_condition("Ready", "False", MARKUP)]}}
            path = "/apis/core.kubeadmiral.io/v1alpha1/federatedclusters/east/status"
            merge = {"content-type": "application/merge-patch+json"}
            assert (await admin.patch(path, json=status, headers=merge)).status_code == 200
            for each in (a_cluster_queue("fleet"), a_queue("team", "fleet")):
                plural = f"{each['kind'].lower()}s"
                scope = "" if each["kind"] == "ClusterJobQueue" else "namespaces/default/"
                base = f"/apis/core.kubeadmiral.io/v1alpha1/{scope}{plural}"
                assert (await admin.post(base, json=each)).status_code == 201
                path = f"{base}/{each['metadata']['name']}/status"
                answer = await admin.patch(path, json={"status": QUEUE_STATUS[each["kind"]]}, headers=merge)
                assert answer.status_code == 200, answer.text
            projects = "/apis/core.kubeadmiral.io/v1alpha1/projects"
            assert (await admin.post(projects, json=PROJECT)).status_code == 201
            answer = await admin.patch(f"{projects}/shop/status", json={"status": PROJECT_STATUS}, headers=merge)
            assert answer.status_code == 200, answer.text
            rules = "/apis/core.kubeadmiral.io/v1alpha1/clustertaintpolicies"
            assert (await admin.post(rules, json=RULE)).status_code == 201
            answer = await admin.patch(f"{rules}/trouble/status", json={"status": RULE_STATUS}, headers=merge)
            assert answer.status_code == 200, answer.text
            suspensions = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/default/deliverysuspensions"
            answer = await admin.post(suspensions, json=SUSPENSION)
            assert answer.status_code == 201, answer.text
            rollouts = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/default/federatedrollouts"
            answer = await admin.post(rollouts, json=ROLLOUT)
            assert answer.status_code == 201, answer.text
            answer = await admin.patch(f"{rollouts}/web/status", json={"status": ROLLOUT_STATUS}, headers=merge)
            assert answer.status_code == 200, answer.text
            explanation = {
                "unit": {"mode": MARKUP}, "policy": {"name": MARKUP}, "reason": MARKUP, "profile": MARKUP,
                "clusters": ["east"], "previous": {"east": 1}, "placements": {"east": 2}, "because": [MARKUP],
                "scores": {
                    "clusters": ["east"], "totals": [7],
                    "plugins": [{"plugin": MARKUP, "weight": 1, "raw": [7], "normalised": [7]}],
                },
            }  # fmt: skip
            for name in ("web", MARKUP.replace("/", "")):
                moment = datetime(2026, 1, 1, tzinfo=UTC)
                record = DecisionRecord(
                    moment, "apps", "Deployment", "default", name, MARKUP, 1.0, orjson.dumps(explanation)
                )
                await parts.journal.append(record)
            shown = ""
            for address in MARKED:
                for suffix in (
                    "",
                    f"?{httpx.QueryParams(dict.fromkeys(PARAMETERS, MARKUP))}",
                ):
                    answer = await browser.get(address + suffix)
                    assert answer.status_code == 200, answer.text
                    tags = Tags()
                    tags.feed(answer.text)
                    assert tags.loaded == FRAME, address
                    assert tags.handlers == []
                    assert "49" not in tags.text, "a template in data was evaluated"
                    shown += tags.text
            assert MARKUP[:28] in shown.replace(MARKUP, ""), "the manager in the member is shown as text"
            assert shown.count(MARKUP) >= 3, "the event and the cluster's message are shown as text"


def _condition(type_: str, status: str, message: str) -> dict[str, str]:
    now = "2026-01-01T00:00:00Z"
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": type_, "status": status, "reason": "R", "message": message, **times}


@pytest.mark.parametrize("path", ["/ui/login", "/ui/link", "/ui/none", "/ui/static/ui.js"])
async def test_every_response_forbids_inline_scripts_and_frames(parts: Parts, path: str) -> None:
    async with connect(parts.app, None) as browser:
        answer = await browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


FOREIGN: list[dict[str, str]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {},
]


@pytest.mark.parametrize("headers", FOREIGN)
async def test_another_site_can_neither_log_in_nor_out(
    parts: Parts, admin: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    """A foreign log-in would let the victim work in the session of the attacker."""
    token = await token_of(admin)
    code = await code_of_link(admin)
    async with connect(parts.app, None, **headers) as browser:
        for path, form in (("/ui/login", {"token": token}), ("/ui/link", {"code": code})):
            answer = await browser.post(path, data=form)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
    async with logged_in(parts, Credentials(token=token), **headers) as browser:
        answer = await browser.post("/ui/logout", data={"form_key": "guessed"})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


async def test_a_form_that_ends_early_is_no_failure(parts: Parts) -> None:
    """A thousand connections would otherwise fill the log with traces."""
    messages = iter([{"type": "http.request", "body": b"token=", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> MutableMapping[str, Any]:
        return next(messages)

    async def send(_: MutableMapping[str, Any]) -> None:
        pass

    headers = [(b"host", b"api"), (b"origin", b"https://api"), (b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": "/ui/login", "raw_path": b"/ui/login", "scheme": "https"}
    scope |= {"root_path": "", "query_string": b"", "headers": headers, "http_version": "1.1"}
    with capture_logs() as logs:
        await parts.app(scope, receive, send)
    assert logs == []


async def test_a_form_needs_the_key_of_its_session(parts: Parts, admin: httpx.AsyncClient) -> None:
    async with logged_in(parts, Credentials(token=await token_of(admin)), **OWN) as browser:
        assert (await browser.post("/ui/logout")).status_code == 403
        assert (await browser.post("/ui/logout", data={"form_key": "x" * 22})).status_code == 403


async def test_a_certificate_without_a_session_is_no_log_in(parts: Parts) -> None:
    """A browser presents its certificate to every page, so it must not be enough for one."""
    async with connect(parts.app, ADMIN) as browser:
        assert (await browser.get("/ui/objects")).status_code == 303


ELSEWHERE = [
    "https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
    "/ui/../../evil", "/ui/%2e%2e/evil", "/ui/.%2E/evil", "/api", "", "ui/objects", "/ui/objects\r\nset-cookie: a=b", "/ui//evil.example\\", "https:/ui/",
    "///ui/", "/ui/\u2028", "http:///ui/x",
]  # fmt: skip


@pytest.mark.parametrize("target", ELSEWHERE)
async def test_a_log_in_goes_on_only_within_the_ui(parts: Parts, admin: httpx.AsyncClient, target: str) -> None:
    token = await token_of(admin)
    async with connect(parts.app, None, **OWN) as browser:
        answer = await browser.post("/ui/login", data={"token": token, "next": target})
        assert answer.status_code == 303
        where = httpx.URL("https://api").join(answer.headers["location"])
        assert where.host == "api"
        assert where.path.startswith("/ui/")
        shown = await browser.get("/ui/login", params={"next": target})
        assert 'value="/ui/overview"' in shown.text


async def test_a_session_that_somebody_else_chose_is_not_taken_over(parts: Parts, admin: httpx.AsyncClient) -> None:
    token = await token_of(admin)
    async with logged_in(parts, Credentials(token="planted"), **OWN) as browser:
        planted = browser.cookies[login.COOKIE]
        answer = await browser.post("/ui/login", data={"token": token})
        cookie = answer.headers["set-cookie"]
        assert planted not in cookie
        assert token not in cookie
        for part in ("HttpOnly", "Secure", "SameSite=strict", "Path=/"):
            assert part in cookie
        assert cookie.startswith("__Host-")
        assert "Domain" not in cookie


async def test_a_changed_or_old_cookie_is_no_session(parts: Parts) -> None:
    clock = ManualClock(start=datetime.now(UTC))
    sealer = Sealer(parts.pki.token_key.read_bytes, clock)
    sealed = sealer.seal("admin", Credentials(peer=ADMIN))
    foreign = Sealer(lambda: b"another key", clock).seal("admin", Credentials(peer=ADMIN))
    assert sealer.open(sealed) is not None
    for bad in (sealed[:-4] + "AAAA", sealed[:40] + "A" + sealed[41:], foreign, "", "é", "a.b.c"):
        assert sealer.open(bad) is None
    await clock.advance(SESSION_S + 1)
    assert sealer.open(sealed) is None


async def test_a_revoked_token_ends_the_session(parts: Parts, admin: httpx.AsyncClient) -> None:
    token = await token_of(admin)
    async with connect(parts.app, None, **OWN) as browser:
        assert (await browser.post("/ui/login", data={"token": token})).status_code == 303
        assert (await browser.get("/ui/fleet")).status_code == 403, "known, without the permission"
        assert (await admin.delete("/api/v1/namespaces/default/serviceaccounts/robot")).status_code == 200
        parts.authenticator._cache.clear()  # otherwise the token stays valid for ten seconds, as over the network
        answer = await browser.get("/ui/fleet?q=a")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/ui/login?next=%2Fui%2Ffleet%3Fq%3Da&ended=1"
        assert login.COOKIE not in browser.cookies, "the cookie is removed"
    async with logged_in(parts, Credentials(token=token)) as browser:
        refreshed = await browser.get("/ui/fleet", headers={"hx-request": "true"})
        assert refreshed.headers["hx-redirect"].startswith("/ui/login")


async def test_a_link_works_once_and_not_for_long(parts: Parts, admin: httpx.AsyncClient) -> None:
    code = await code_of_link(admin)
    async with connect(parts.app, None, **OWN) as browser:
        looked = await browser.get("/ui/link")
        assert "set-cookie" not in looked.headers, "a program that looks at the link does not use it up"
        assert (await browser.post("/ui/link", data={"code": code})).status_code == 303
        assert login.COOKIE in browser.cookies
    async with connect(parts.app, None, **OWN) as browser:
        assert (await browser.post("/ui/link", data={"code": code})).status_code == 403
        assert (await browser.post("/ui/link", data={"code": "../federation-keys"})).status_code == 403


async def test_a_link_needs_credentials_and_no_browser(parts: Parts, admin: httpx.AsyncClient) -> None:
    async with connect(parts.app, None) as nobody:
        assert (await nobody.post("/ui/links")).status_code == 401
        assert (await nobody.post("/ui/links", headers={"authorization": "Bearer wrong"})).status_code == 401
    forged = await admin.post("/ui/links", headers={"origin": "https://evil.example"})
    assert forged.status_code == 403, "a site may not use the certificate of a browser"


async def test_requests_of_a_page_carry_nothing_of_the_browser_but_its_session(parts: Parts) -> None:
    """Neither impersonation nor a second credential passes through a page."""
    headers = {"impersonate-user": "admin", "impersonate-group": "system:masters", "authorization": "Bearer x"}
    async with logged_in(parts, Credentials(peer=Peer("bob", ())), **headers) as browser:
        answer = await browser.get("/ui/fleet")
        assert answer.status_code == 403
        assert "bob" in answer.text


@pytest.mark.parametrize(
    "name", ["..%2f..%2frendering.py", "%2e%2e/uiapp.py", "README.md", "ui.css%00.js", "htmx.LICENSE"]
)
async def test_only_files_for_browsers_are_served(parts: Parts, name: str) -> None:
    async with connect(parts.app, None) as browser:
        assert (await browser.get(f"/ui/static/{name}")).status_code == 404


async def test_paths_of_a_page_do_not_lead_to_other_resources(parts: Parts) -> None:
    """The parts of an address become parts of a path of the API, whose permissions are checked there."""
    async with logged_in(parts, Credentials(peer=Peer("bob", ()))) as browser:
        for path in ("core/v1/secrets/kube-system/x", "core/v1/..%2fsecrets/default/x", "core/v1/pods/default/..%2fx"):
            answer: Any = await browser.get(f"/ui/objects/{path}")
            assert answer.status_code in (403, 404)


def test_a_link_outlives_no_clock_change() -> None:
    """A session of the future, from a host whose clock is ahead, is refused beyond a minute."""
    clock = ManualClock(start=datetime.now(UTC))
    ahead = ManualClock(start=clock.now() + timedelta(hours=1))
    sealed = Sealer(lambda: b"key", ahead).seal("a", Credentials(token="t"))
    assert Sealer(lambda: b"key", clock).open(sealed) is None
