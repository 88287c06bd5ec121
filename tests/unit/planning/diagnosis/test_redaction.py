"""Secrets that contain other secrets are removed whole."""

import pytest

from federation.planning.diagnosis.redaction import Redactor

SHORT, LONG = b"password-1", b"password-1-and-more"


@pytest.mark.parametrize("secrets", [(SHORT, LONG), (LONG, SHORT)])
def test_no_end_of_a_secret_stays_because_its_beginning_is_another_one(secrets: tuple[bytes, ...]) -> None:
    text = Redactor(secrets).text(f"a {LONG.decode()} b {SHORT.decode()} c")
    assert "and-more" not in text
    assert "password" not in text
    assert [text[0], text[-1]] == ["a", "c"]
