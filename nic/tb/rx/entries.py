"""A host that reads received entries on the NIC, one entry after the other, and frees them when it likes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from cocotb.triggers import RisingEdge

from rx.bench import PIPE, WINDOW_LINES, Bench, Queue

WHOLE, ADDRESS = 1, 2
HEAD_WORDS = 2


@dataclass
class Reader:
    """What it knows of one queue. Counts of entries are absolute."""

    bench: Bench
    queue: Queue
    entry_lines: int
    epoch: int
    read: int = 0
    freed: int = 0
    words: dict[int, int | None] = field(default_factory=dict)
    tags: dict[int, int] = field(default_factory=dict)
    long: deque[int] = field(default_factory=deque)
    zeros: int = 0

    @property
    def entries(self) -> int:
        return WINDOW_LINES // self.entry_lines

    def ask(self, words: range, free_tags: list[int]) -> None:
        base = self.read % self.entries * self.entry_lines * 8
        for word in words:
            tag = free_tags.pop()
            self.tags[tag] = word
            self.words[word] = None
            self.bench.asked.append((self.queue.number, base + word, tag))

    def answered(self, tag: int, value: int) -> None:
        self.words[self.tags.pop(tag)] = value

    def take(self) -> bytes | None:
        """The frame that was read, once all words are here; a zero head means that there is none yet."""
        head = self.words.pop(0, None) or 0
        words, self.words = self.words, {}
        if head == 0 or head >> 32 != self.read & 0x7FFF_FFFF:
            # Not there, or the entry of the lap before, which was not freed when it was asked for.
            self.zeros += 1
            return None
        length, kind = head & 0xFFFF, head >> 16 & 0xF
        assert head >> 24 & 0xFF == self.epoch and head >> 20 & 0xF == 0, f"head {head:#x}"
        room = self.entry_lines * 64 - 16
        assert kind == (WHOLE if length <= room else ADDRESS), f"head {head:#x}"
        self.read += 1
        if kind == ADDRESS:
            self.long.append(length)
            # The entry tells of a frame in a pipe sooner than its notification.
            frame = self.queue.take_pipe() if self.queue.mode == PIPE else self.queue.poll()
            assert frame is not None and len(frame) == length, "the entry overtook the frame in memory"
            return frame
        given = b"".join((words.get(HEAD_WORDS + i) or 0).to_bytes(8, "little") for i in range(room // 8))
        assert not any(given[length:]), "what the frame does not fill is zero"
        return given[:length]


class Readers:
    """Those of all queues, with tags for their reads."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.readers: dict[int, Reader] = {}
        self.tags = list(range(1, 400))
        self.owner: dict[int, Reader] = {}

    def add(self, queue: Queue, entry_lines: int, epoch: int) -> Reader:
        self.readers[queue.number] = Reader(self.bench, queue, entry_lines, epoch)
        return self.readers[queue.number]

    async def step(self) -> None:
        """A cycle: answers in, frames taken and compared, the next reads out."""
        bench = self.bench
        await RisingEdge(bench.dut.clk_i)
        while bench.answers:
            tag, value = bench.answers.popleft()
            reader = self.owner.pop(tag)
            reader.answered(tag, value)
            self.tags.insert(0, tag)
        for number, reader in self.readers.items():
            if reader.tags:
                continue
            if reader.words:
                frame = reader.take()
                if frame is not None:
                    wanted = reader.queue.expected.popleft()
                    assert frame == wanted, f"queue {number}, frame {reader.queue.received}"
                    reader.queue.received += 1
            if reader.freed < reader.read and bench.rng.random() < 0.3:
                reader.freed += bench.rng.randrange(1, reader.read - reader.freed + 1)
                await bench.free_entries(number, reader.freed)
                if reader.queue.mode == PIPE:
                    reader.queue.look()
                    await bench.ring(number, min(reader.queue.next, reader.queue.tail))
                elif reader.queue.mode:
                    await bench.ring(number, reader.queue.next)
            if reader.read - reader.freed < reader.entries and bench.rng.random() < 0.3:
                before = set(self.tags)
                reader.ask(range(reader.entry_lines * 8), self.tags)
                for tag in before - set(self.tags):
                    self.owner[tag] = reader
