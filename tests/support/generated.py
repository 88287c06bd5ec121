"""How many examples a property generates. The profile says it (tests/conftest.py); a property can ask for a multiple."""

from hypothesis import settings

_USUAL = 100


def examples(count: int) -> settings:
    """Return the settings of a property that has `count` examples where others have a hundred."""
    return settings(max_examples=max(1, count * settings().max_examples // _USUAL))
