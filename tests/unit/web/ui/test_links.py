"""One-time links: short, once, for ten minutes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.clock import ManualClock
from federation.apiserver.auth.clientcertificates import Peer
from federation.web.ui.credentials import Credentials
from federation.web.ui.links import LINK_S, OneTimeLinks

ADMIN = Credentials(peer=Peer("federation-admin", ("system:masters",), "ab" * 32))


def some_links(key: bytes = b"key") -> tuple[OneTimeLinks, ManualClock]:
    clock = ManualClock(start=datetime(2026, 1, 1, tzinfo=UTC))
    return OneTimeLinks(lambda: key, clock), clock


def test_the_link_of_an_administrator_fits_on_two_lines_of_a_terminal() -> None:
    links, _ = some_links()
    address = "https://127.0.0.1:7443/ui/link#" + links.create("federation-admin", ADMIN)
    assert len(address) <= 180


@pytest.mark.parametrize(
    ("user", "credentials"),
    [
        ("federation-admin", ADMIN),
        ("bob", Credentials(peer=Peer("bob", ()))),
        ("bob", Credentials(peer=Peer("bob", ("ü", ""), ""))),
        ("system:serviceaccount:a:b", Credentials("header.payload.signature")),
    ],
)
def test_a_link_gives_back_the_credentials_once(user: str, credentials: Credentials) -> None:
    links, _ = some_links()
    code = links.create(user, credentials)
    assert links.redeem(code) == (user, credentials)
    assert links.redeem(code) is None


async def test_a_link_ends_after_ten_minutes_and_is_not_made_in_the_future() -> None:
    links, clock = some_links()
    old, late = links.create("a", ADMIN), links.create("a", ADMIN)
    await clock.advance(LINK_S)
    assert links.redeem(old) is not None
    await clock.advance(1)
    assert links.redeem(late) is None
    ahead, _ = some_links()
    assert ahead.redeem(links.create("a", ADMIN)) is None


def test_neither_changed_codes_nor_those_of_another_key_are_redeemed() -> None:
    links, _ = some_links()
    code = links.create("a", ADMIN)
    for at in range(len(code)):
        changed = code[:at] + ("A" if code[at] != "A" else "B") + code[at + 1 :]
        assert links.redeem(changed) is None, at
    for bad in (code + "=", code + "A", code[:-1], " " + code, code.replace(code[0], "é"), "", "A" * 20_000):
        assert links.redeem(bad) is None
    assert some_links(b"other")[0].redeem(code) is None
    assert links.redeem(code) is not None, "a wrong guess does not use it up"


@given(st.text(max_size=60))
def test_no_text_is_a_link(text: str) -> None:
    assert some_links()[0].redeem(text) is None
