"""Where uids and random name endings come from: an argument of the registry, so that tests can repeat themselves."""

import random
import uuid
from typing import Protocol

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Entropy(Protocol):
    """Makes identities."""

    def uid(self) -> str:
        """Return a new uid, 36 characters."""
        ...

    def suffix(self) -> str:
        """Return five characters for a generated name; letters that make no words."""
        ...


class SystemEntropy:
    """The machine's randomness."""

    def uid(self) -> str:
        return str(uuid.uuid4())

    def suffix(self) -> str:
        return "".join(random.SystemRandom().choices(_LETTERS, k=5))


class SeededEntropy:
    """Repeatable identities, for tests and simulations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  # repeatable on purpose, guards nothing

    def uid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._random.choices(_LETTERS, k=5))
