"""What no database can hold is refused before it is written."""

import pytest
from tests.support.stores import a_body

from federation.apimachinery.errors import StoreError
from federation.apiserver.store.writes import KEY_LENGTH_MAX, check_write


@pytest.mark.parametrize("key", ["/a", "/ä", "a" * KEY_LENGTH_MAX], ids=["short", "a letter of two bytes", "longest"])
def test_a_key_of_a_database_is_accepted(key: str) -> None:
    check_write(key, a_body("x"))


@pytest.mark.parametrize(
    "key", ["", "/a\0b", "/a\ud800", "a" * (KEY_LENGTH_MAX + 1)], ids=["empty", "NUL", "half a pair", "too long"]
)
def test_a_key_that_no_database_can_hold_is_refused(key: str) -> None:
    with pytest.raises(StoreError, match="cannot be a key"):
        check_write(key, a_body("x"))
