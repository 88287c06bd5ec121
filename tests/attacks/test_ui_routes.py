"""Every route of the web UI, by the list of its screens: no session, no form from elsewhere, and markup in what it shows."""

import re
from pathlib import Path

import httpx
import pytest
from tests.attacks.test_ui import MARKED, logged_in, token_of
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect

from federation.features.catalogue import feature_screens
from federation.web.ui.credentials import Credentials
from federation.web.ui.screen import Screen
from federation.web.ui.uiapp import SCREENS

ALL = (*SCREENS, *feature_screens())
MARKED_ELSEWHERE = {
    "/ui/holds/{name}": "test_ui_approval.py",
    "/ui/pods/{namespace}/{name}": "test_ui_pods.py",
    "/ui/pods/{namespace}/{name}/terminal": "test_ui_terminal.py",
}
"""Screens that show markup in another module."""


def address_of(screen: Screen) -> str:
    return re.sub(r"{\w+}", "x", screen.path)


async def test_no_page_without_a_session(parts: Parts) -> None:
    async with connect(parts.app, None) as browser:
        for screen in SCREENS:
            answer = await browser.get(address_of(screen))
            assert answer.status_code == 303, screen.path
            assert answer.headers["location"].startswith("/ui/login?next="), screen.path
            stream = await browser.get(address_of(screen), headers={"accept": "text/event-stream"})
            assert stream.status_code == 204, screen.path
            assert (await browser.post(address_of(screen), data={"do": "it"})).status_code == 303, screen.path


async def test_no_page_takes_a_form_from_elsewhere(parts: Parts, admin: httpx.AsyncClient) -> None:
    token = await token_of(admin)
    for origin, refusal in (("https://evil.example", 403), ("https://api", 405)):
        async with logged_in(parts, Credentials(token=token), origin=origin) as browser:
            for screen in SCREENS:
                answer = await browser.post(address_of(screen), data={"form_key": "guessed"})
                assert answer.status_code == (refusal if screen.act is None else 403), screen.path


@pytest.mark.parametrize("screen", ALL, ids=lambda screen: screen.path)
def test_markup_is_shown_on_every_page_by_some_attack(screen: Screen) -> None:
    pattern = re.compile(re.sub(r"{\w+}", "[^/]+", screen.path))
    if elsewhere := MARKED_ELSEWHERE.get(screen.path):
        text = (Path(__file__).parent / elsewhere).read_text()
        assert screen.path.split("{")[0] in text
    else:
        assert any(pattern.fullmatch(address) for address in MARKED), "add an address of it to MARKED in test_ui.py"
