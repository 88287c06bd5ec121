"""Source of uids and random name suffixes: an argument of the registry, so that tests are repeatable."""

import random
import uuid
from typing import Protocol

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Entropy(Protocol):
    """Generates uids and name suffixes."""

    def uid(self) -> str:
        """Return a new uid, 36 characters."""
        ...

    def suffix(self) -> str:
        """Return five characters for `generateName`, without vowels, so that they spell no words."""
        ...


class SystemEntropy:
    """The machine's randomness."""

    def uid(self) -> str:
        return str(uuid.uuid4())

    def suffix(self) -> str:
        return "".join(random.SystemRandom().choices(_LETTERS, k=5))


class SeededEntropy:
    """Repeatable values, for tests and simulations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  # repeatable on purpose, guards nothing

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._random.choices(_LETTERS, k=5))
