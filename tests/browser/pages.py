"""The web UI of a running federation as a browser sees it: addresses, log-ins, and a check of every page."""

import json
import shutil
import ssl
import urllib.request
from pathlib import Path
from typing import Literal, TypeAlias

from playwright.sync_api import Page

from tests.support.federation import Federation

_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is Chromium without its windows, menus and profiles, which take a third of the CPU time of these tests."""
CHROMIUM = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
_AXE = (Path(__file__).parent / "testdata" / "axe.min.js").read_text()
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
OBJECT = "/ui/objects/apps/v1/deployments/default/nginx"
DECISION = "/ui/decisions/apps/Deployment/default/nginx"
Look: TypeAlias = tuple[Literal["light", "dark"], int]
LOOKS: tuple[Look, ...] = (("light", 1280), ("dark", 390))
"""Colour schemes and widths in which screens are checked: each of both once, on a desk and on a phone."""


class Site:
    """One federation; `running` is replaced by a restart."""

    def __init__(self, running: Federation) -> None:
        self.running = running
        self.url = running.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    def link(self) -> str:
        """Return a one-time link for the administrator."""
        keys = self.running.directory / "pki"
        tls = ssl.create_default_context(cafile=str(keys / "ca.crt"))
        tls.load_cert_chain(keys / "admin.crt", keys / "admin.key")
        request = urllib.request.Request(f"{self.url}/ui/links", data=b"", method="POST")
        with urllib.request.urlopen(request, context=tls, timeout=90) as answer:
            return self.url + str(json.load(answer)["path"])

    def log_in(self, page: Page) -> None:
        """Open the UI as the administrator."""
        page.goto(self.link())
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url("**/ui/overview")

    def open(self, page: Page, path: str) -> None:
        """Open a page and wait until it is live."""
        page.goto(self.url + path)
        page.wait_for_selector("#live-state[data-state=on]")


def watch_for_faults(page: Page) -> list[str]:
    """Return a list that gets every error of the page, violations of its security policy among them."""
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    return faults


def show_as(page: Page, look: Look) -> None:
    """Show a page in a colour scheme and a width, without loading it again.

    Without reduced motion, colours would be on their way from one scheme to the other when they are checked.
    """
    scheme, width = look
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 860})


def check_look(page: Page, name: str) -> None:
    """Check that a page is accessible and does not scroll sideways."""
    assert (found := accessibility_faults(page)) == [], f"{name}: {found}"
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"{name} scrolls sideways"


def accessibility_faults(page: Page) -> list[str]:
    """Return the findings of axe-core."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    found = page.evaluate("rules => axe.run({runOnly: {type: 'tag', values: rules}})", _RULES)
    return [
        f"{violation['impact']} {violation['id']}: {node['html'][:160]} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
