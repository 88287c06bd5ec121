"""The syntax trees live as long as the module of tests that reads them."""

from collections.abc import Iterator

import pytest
from tests.support.sources import forget_trees


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    yield
    forget_trees()
