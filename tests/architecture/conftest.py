"""The syntax trees live as long as the tests of this folder; those that read them run in one worker."""

from collections.abc import Iterator

import pytest
from tests.support.sources import forget_trees


@pytest.fixture(scope="package", autouse=True)
def _trees() -> Iterator[None]:
    yield
    forget_trees()
