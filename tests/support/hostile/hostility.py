"""`Hostility(seed, victims).requests(n)`: n requests, from all recipes, that must be refused or at least change nothing."""

from collections.abc import Callable, Iterator

from tests.support.hostile.harmless import Harmless
from tests.support.hostile.refused import Refused
from tests.support.hostile.world import HostileRequest


class Hostility(Refused, Harmless):
    """A client that sends only bad or harmless requests."""

    def requests(self, number: int) -> Iterator[HostileRequest]:
        """Yield `number` requests; the same seed and victims give the same ones."""
        recipes: list[Callable[[Hostility], HostileRequest]] = [*SURE, *HARMLESS]
        for _ in range(number):
            yield self._rng.choice(recipes)(self)


SURE = (
    Hostility.wrong_type, Hostility.wrong_type, Hostility.wrong_type, Hostility.wrong_kind, Hostility.no_json, Hostility.bad_yaml,
    Hostility.wrong_media_type, Hostility.wrong_encoding, Hostility.other_name, Hostility.bad_name, Hostility.bad_metadata,
    Hostility.bad_write_option, Hostility.strictly_unknown, Hostility.bad_json_patch, Hostility.bad_apply, Hostility.bad_delete,
    Hostility.bad_selection, Hostility.bad_subresource, Hostility.bad_subresource, Hostility.no_right, Hostility.odd_path,
    Hostility.odd_verb, Hostility.bad_definition,
)  # fmt: skip
HARMLESS = (
    Hostility.mutated_dry_run, Hostility.mutated_dry_run, Hostility.mutated_dry_run, Hostility.mutated_dry_run, Hostility.patched_dry_run,
    Hostility.patched_dry_run, Hostility.patched_dry_run, Hostility.odd_read, Hostility.odd_read, Hostility.raw_query, Hostility.elsewhere, Hostility.review,
)  # fmt: skip
