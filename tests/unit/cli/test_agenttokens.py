"""`fedctl token list` says which registration tokens can still be used."""

from datetime import UTC, datetime

import pytest

from federation.cli.agenttokens import state_of, to_document
from federation.client.registrationtoken import to_secret

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
UNTIL_ONE = "2026-01-01T13:00:00Z"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"expires": UNTIL_ONE}, "expires in 1h"),
        ({"expires": "2026-01-01T12:00:00Z"}, "expired"),
        ({"expires": ""}, "expired"),
        ({"expires": UNTIL_ONE, "used": "2026-01-01T11:55:00Z"}, "used 5m ago"),
        ({"expires": "2026-01-01T11:59:00Z", "used": "2026-01-01T11:55:00Z"}, "used 5m ago"),
        ({"expires": UNTIL_ONE, "used": "yes"}, "used"),
    ],
    ids=["open", "expired", "without an end", "used", "used and expired", "used at no time"],
)
def test_the_state_of_a_token(values: dict[str, str], expected: str) -> None:
    document = to_document(
        to_secret("ab12", {"cluster": "paris", "hash": "h", "labels": "{}", "taints": "[]", **values})
    )
    assert (document["token"], document["cluster"]) == ("ab12", "paris")
    assert "hash" not in document
    assert state_of(document, NOW) == expected
