"""A decision journal in memory: for worlds that end with the process. It passes the tests of `SQLJournal`."""

import itertools
from collections import deque
from dataclasses import replace
from datetime import datetime, timedelta

from federation.journal.decisions import DecisionFilter, DecisionRecord, Identity, JournalOptions
from federation.scheduling.replay.logentries import Chunk
from federation.scheduling.replay.recorder import InputRecorder


class MemoryJournal:
    """`Journal` in memory, bounded by age, by records per object and altogether."""

    def __init__(self, options: JournalOptions | None = None) -> None:
        self._options = options or JournalOptions()
        self._records: dict[int, DecisionRecord] = {}
        self._numbers_of: dict[Identity, deque[int]] = {}
        self._next_number = itertools.count(1)
        self.inputs = InputRecorder(is_on=self._options.inputs_bytes_max > 0)
        self.chunks: list[Chunk] = []

    async def read_inputs(self, since_us: int, after: tuple[int, int], bytes_max: int) -> list[Chunk]:
        del bytes_max  # one answer has all of them
        while (chunk := self.inputs.take()) is not None:
            self.chunks.append(chunk)
        reached = {chunk.segment for chunk in self.chunks if chunk.last_us >= since_us}
        return [each for each in self.chunks if each.segment in reached and (each.segment, each.number) > after]

    async def append(self, record: DecisionRecord) -> None:
        number, numbers = next(self._next_number), self._numbers_of.setdefault(record.identity, deque())
        oldest = record.at - timedelta(days=self._options.age_days_max)
        while numbers and (len(numbers) >= self._options.rows_per_object_max or self._records[numbers[0]].at < oldest):
            del self._records[numbers.popleft()]
        self._records[number] = replace(record, number=number)
        numbers.append(number)
        if len(self._records) > self._options.rows_max:
            first = self._records.pop(next(iter(self._records)))
            self._numbers_of[first.identity].popleft()
            if not self._numbers_of[first.identity]:
                del self._numbers_of[first.identity]

    async def record_repeat(self, identity: Identity, first_at: datetime, at: datetime) -> None:
        for number in self._numbers_of.get(identity, ()):
            record = self._records[number]
            if record.at == first_at:
                self._records[number] = replace(record, repeats=record.repeats + 1, last_at=at)

    async def query(
        self, selection: DecisionFilter, *, limit: int = 1, below: int | None = None
    ) -> list[DecisionRecord]:
        found = (
            record
            for number, record in reversed(self._records.items())
            if (below is None or number < below) and selection.matches(record)
        )
        return list(itertools.islice(found, limit))
