"""Tokens of merged lists: any content comes back, nothing else is accepted."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import BadRequest, Expired
from federation.memberproxy import mergedtokens
from federation.memberproxy.mergedtokens import Position

REVISIONS = st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5)


@given(REVISIONS)
def test_revisions_come_back(revisions: dict[str, str]) -> None:
    assert mergedtokens.decode_revisions(mergedtokens.encode_revisions(revisions)) == revisions


@given(REVISIONS, st.text(max_size=20), st.text(max_size=50))
def test_positions_come_back(revisions: dict[str, str], cluster: str, token: str) -> None:
    position = Position(revisions, cluster, token)
    assert mergedtokens.decode_position(mergedtokens.encode_position(position)) == position


@given(st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(Expired):
        mergedtokens.decode_revisions(text)
    with pytest.raises(BadRequest, match="continue key is not valid"):
        mergedtokens.decode_position(text)


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"r":[]}', b'{"r":{"a":1}}', b'{"r":{},"c":1,"t":""}', b"1" * 99])
def test_a_token_with_other_content_is_refused(content: bytes) -> None:
    token = base64.urlsafe_b64encode(zlib.compress(content)).decode()
    with pytest.raises(BadRequest):
        mergedtokens.decode_position(token)


def test_a_small_token_with_huge_content_is_refused() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b'{"r":{"a":"' + b"1" * 50_000_000 + b'"}}')).decode()
    assert len(bomb) < 100_000
    with pytest.raises(Expired):
        mergedtokens.decode_revisions(bomb)


def test_the_token_of_a_thousand_clusters_fits_into_a_request() -> None:
    revisions = {f"cluster-{number}": str(1_000_000 + number * 7919) for number in range(1000)}
    assert len(mergedtokens.encode_revisions(revisions)) < 16 * 1024
