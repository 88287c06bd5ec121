"""A federation with three simulated members and headless Chromium; without Chromium these tests are skipped."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.pages import CHROMIUM, Site
from tests.support.federation import start_federation
from tests.support.ports import lasting_port
from tests.support.vectors import ROOT


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for one module: while its driver runs, this thread has an event loop that other tests must not see."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The quickstart on a federation alone; the browser comes first, so that nothing starts without one.

    Screens show all that is in a federation, and tests restart it on its port.
    """
    running = start_federation(tmp_path_factory.mktemp("ui") / "state", arguments=["--port", str(lasting_port())])
    opened = Site(running)
    try:
        for file in sorted((ROOT / "examples" / "quickstart").glob("*.yaml")):
            running.kubectl("apply", "-f", str(file))
        running.kubectl("rollout", "status", "deployment/nginx", "--timeout=90s")
        yield opened
    finally:
        opened.running.close()  # a restart replaces it


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(ignore_https_errors=True)
    opened.set_default_timeout(90_000)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
