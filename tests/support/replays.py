"""Replays of recorded decisions: every world ends with one, and each decision must come out as it did."""

from federation.admission.deviceselectors import selects
from federation.features.catalogue import decision_chain
from federation.journal.memoryjournal import MemoryJournal
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.scheduling.replay.comparison import Comparison
from federation.scheduling.replay.logentries import read
from federation.scheduling.replay.otherworld import Changes, redecide_elsewhere
from federation.scheduling.replay.redecide import Verdict, redecide

_FOREVER_US = 2**62


async def replay(journal: MemoryJournal, plugins: PluginRegistry | None = None) -> Verdict:
    """Decide everything again that a journal has recorded."""
    verdict = Verdict()
    chunks = await journal.read_inputs(0, (0, 0), 1 << 40)
    for again in redecide(read(chunks), plugins or load_plugins(selects=selects), decision_chain(), 0, _FOREVER_US):
        verdict.add(again)
    return verdict


async def differences(journal: MemoryJournal, plugins: PluginRegistry | None = None) -> list[str]:
    """Return the decisions that a replay does not repeat."""
    verdict = await replay(journal, plugins)
    return [
        f"replayed otherwise: {each.entry.key} at {each.entry.at_us}: {each.entry.result} -> {each.again} {each.problem}"
        for each in verdict.different
    ]


async def elsewhere(journal: MemoryJournal, changes: Changes) -> Comparison:
    """Decide everything again in another world, and compare it with the recorded one to the end of the last hour."""
    comparison = Comparison()
    chunks = await journal.read_inputs(0, (0, 0), 1 << 40)
    for each in redecide_elsewhere(
        read(chunks), load_plugins(selects=selects), decision_chain(), changes, 0, _FOREVER_US
    ):
        comparison.add(each)
    comparison.finish(_FOREVER_US)
    return comparison
