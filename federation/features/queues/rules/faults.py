"""Jobs for which a round raised an unforeseen error: they wait with a reason, and the round goes on without them. Pure.

A round is a function of all jobs, so it is repeated from the beginning once the job that it was looking at is set
aside: nothing half done is kept. The job is tried again when it changes, and after `RETRY_S`. At most `PER_ROUND_MAX`
jobs are set aside in one call; the next one continues from there. Fewer are tried again in one call, so that jobs that
stay broken cost no call, however many they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from federation.apimachinery.errors import ApiError, Bug

RETRY_S = 300.0
"""Time until a job that was set aside is tried again."""
PER_ROUND_MAX = 16
"""Jobs set aside in one call, each for the time of a round."""
_RETRIES_MAX = PER_ROUND_MAX // 2
"""Jobs tried again in one call."""
_MESSAGE_MAX = 300

_Found = TypeVar("_Found")


class JobFailed(Bug):
    """The error of one job, by its key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    @property
    def error(self) -> BaseException:
        """The error itself, which this one was raised from."""
        return self.__cause__ or self


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of one job. `until_s` is None until the next round."""

    key: str
    error: BaseException
    until_s: float | None = None

    @property
    def because(self) -> str:
        """Why the job waits, for its author. The text of an unforeseen error can name objects of others."""
        if isinstance(self.error, ApiError):
            return f"its admission was not accepted: {self.error}"[:_MESSAGE_MAX]
        return f"an internal error ({type(self.error).__name__}), see the log of the host; it is tried again in minutes"


def blame(compute: Callable[[], _Found], key: Callable[[], str]) -> _Found:
    """Return the result, or raise JobFailed for the job that `key` returns after an error; "" raises it as it is."""
    try:
        return compute()
    except Exception as error:
        found = key()
        if not found:
            raise
        raise JobFailed(found) from error


class Faults:
    """The jobs that are set aside."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self._new: list[Fault] = []

    def get(self, key: str) -> Fault | None:
        """Return the fault of a job."""
        return self._faults.get(key)

    def record(self, key: str, error: BaseException) -> None:
        """Set a job aside."""
        fault = self._faults[key] = Fault(key, error)
        self._new.append(fault)

    def forget(self, key: str) -> None:
        """Try a job again, because it has changed or is gone."""
        self._faults.pop(key, None)

    def due(self, now: float) -> list[str]:
        """Return the jobs that are tried again from now on, a few at a time; the time of new ones begins."""
        ended = [key for key, fault in self._faults.items() if fault.until_s is not None and now >= fault.until_s]
        del ended[_RETRIES_MAX:]
        for key in ended:
            del self._faults[key]
        for key, fault in self._faults.items():
            if fault.until_s is None:
                self._faults[key] = Fault(key, fault.error, now + RETRY_S)
        return ended

    def take_new(self) -> list[Fault]:
        """Return those recorded since the last call, for the log."""
        found, self._new = self._new, []
        return found
