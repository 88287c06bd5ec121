"""A load is waited for, and a write that fails is the failure of the test."""

import threading

import pytest
from tests.support.load import Load


def test_a_wait_ends_with_writes_that_began_after_it() -> None:
    begun: list[int] = []
    with Load(begun.append) as load:
        load.wait_for_more(1)
        known = load.acknowledged
        load.wait_for_more(2)
        assert load.acknowledged >= known + 2
    assert begun == list(range(load.acknowledged))


def test_a_wait_raises_what_a_write_raises() -> None:
    def write(index: int) -> None:
        if index == 3:
            raise ValueError("no disk")

    with pytest.raises(AssertionError, match="write 3 failed: no disk"), Load(write) as load:
        load.wait_for_more(1_000)


def test_a_failure_that_nothing_waited_for_is_raised_at_the_end() -> None:
    has_failed = threading.Event()

    def write(_: int) -> None:
        has_failed.set()
        raise ValueError("no disk")

    with pytest.raises(AssertionError, match="write 0 failed: no disk"), Load(write):
        assert has_failed.wait(60)


def test_the_error_of_the_test_is_not_hidden_by_one_of_a_write() -> None:
    def write(_: int) -> None:
        raise ValueError("no disk")

    with pytest.raises(KeyError), Load(write):
        raise KeyError
