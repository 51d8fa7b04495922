"""The transmit engine with descriptors between a host and a wire, for the tests of this folder."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge

from dma.engine import Engine
from dma.host import (
    LINE_BYTES,
    PAGE_BYTES,
    PERIOD_NS,
    Habits,
    Memory,
    QueueSettings,
    ReadPort,
    WritePort,
    run_bench,
)

BASE = 0x7_0000_0000
QUEUE_BYTES = 1 << 19
RING_AT, BUFFERS_AT, SLOT_BYTES = 4096, 32768, 10240
MAX_FRAME, MIN_FRAME = 9216, 14
DESCRIPTOR, CAUSE_DMA_ERROR, CAUSE_BAD_LENGTH = 3, 8, 9
FLAG_INTERRUPT = 1
COUNTERS = (
    "bad_accesses",
    "descriptor_fetches",
    "payload_fetches",
    "completions",
    "runts",
    "bad_lengths",
    "dma_errors",
)


def pages(address: int, length: int) -> int:
    """Reads that a frame takes."""
    return (address + length - 1) // PAGE_BYTES - address // PAGE_BYTES + 1


@dataclass
class Queue:
    """The host's half of a queue."""

    number: int
    entries: int
    posted: int = 0
    expected: deque[bytes] = field(default_factory=deque)
    received: int = 0
    reads: int = 0

    @property
    def at(self) -> int:
        return BASE + self.number * QUEUE_BYTES

    def slot(self, index: int) -> int:
        return self.at + BUFFERS_AT + index % (480000 // SLOT_BYTES) * SLOT_BYTES


class Bench(Engine):
    """The engine with its host and wire."""

    # What the engine counts, and whether it interrupts.
    COUNTS: tuple[str, ...] = COUNTERS
    INTERRUPTS = True

    def __init__(self, dut: SimHandleBase, seed: int, habits: Habits | None = None) -> None:
        self.dut = dut
        self.rng = random.Random(seed)
        self.habits = habits or Habits()
        self.count = 1 << len(dut.start_queue_i)
        self.memory = Memory(BASE, QUEUE_BYTES * min(self.count, 64))
        self.reads = ReadPort(dut, dut.clk_i, self.memory, self.habits, self.rng)
        self.writes = WritePort(dut, dut.clk_i, self.memory, self.habits, self.rng)
        self.queues: dict[int, Queue] = {}
        self.frames: list[tuple[int, bytes]] = []
        self.frame_ready = 0.8
        self.counters: Counter[str] = Counter()
        self.failed: list[tuple[int, int]] = []
        self.interrupts: list[int] = []
        self.now = 0
        self.cycle = 0
        self.last_frame_cycle = 0

    # ---- The clock, and what else listens.
    async def watch(self) -> None:
        dut = self.dut
        dut.failed_ready_i.value = 1
        if self.INTERRUPTS:
            dut.irq_ready_i.value = 1
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            self.now += PERIOD_NS
            dut.now_ns_i.value = self.now
            if not int(dut.rst_ni.value):
                continue
            for name in self.COUNTS:
                self.counters[name] += int(getattr(dut, f"count_{name}_o").value)
            if int(dut.failed_valid_o.value):
                self.failed.append((int(dut.failed_queue_o.value), int(dut.failed_cause_o.value)))
            if self.INTERRUPTS and int(dut.irq_valid_o.value):
                self.interrupts.append(int(dut.irq_queue_o.value))

    async def begin(self) -> None:
        dut = self.dut
        for name in ("start_valid_i", "stop_valid_i", "start_queue_i", "stop_queue_i", "doorbell_valid_i"):
            getattr(dut, name).value = 0
        dut.start_settings_i.value = 0
        dut.doorbell_queue_i.value = 0
        dut.doorbell_tail_i.value = 0
        dut.now_ns_i.value = 0
        dut.rst_ni.value = 0
        self.reads.idle()
        run_bench(dut, self.reads.run(), self.writes.run(), self.wire(), self.watch())
        await self.reset()

    # ---- What a host does.
    def settings(self, number: int, entries: int, **more: int) -> QueueSettings:
        at = BASE + number * QUEUE_BYTES
        fields = {
            "iface": DESCRIPTOR,
            "tx_ring_address": at + RING_AT,
            "tx_ring_entries": entries,
            "tx_head_address": at + 8,
            "tx_moderation_frames": 1,
        }
        return QueueSettings(**(fields | more))

    async def start(self, number: int, entries: int = 64, **more: int) -> Queue:
        settings = self.settings(number, entries, **more)
        queue = Queue(number, entries)
        self.queues[number] = queue
        self.memory.put_word(queue.at + 8, 0)
        await self.start_with(number, settings.packed())
        return queue

    async def ring(self, number: int, tail: int) -> None:
        self.dut.doorbell_queue_i.value = number
        self.dut.doorbell_tail_i.value = tail
        self.dut.doorbell_valid_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.doorbell_valid_i.value = 0

    def head(self, queue: Queue) -> int:
        return self.memory.word(queue.at + 8)

    def describe(self, queue: Queue, address: int, length: int, flags: int = 0) -> None:
        at = queue.at + RING_AT + queue.posted % queue.entries * 16
        self.memory.write(at, address.to_bytes(8, "little") + length.to_bytes(4, "little"))
        self.memory.write(at + 12, flags.to_bytes(4, "little"))
        queue.posted += 1

    def post(self, queue: Queue, length: int, shift: int = 0, flags: int = 0) -> None:
        """Writes a frame and its descriptor; the doorbell is the caller's."""
        frame = self.rng.randbytes(length)
        address = queue.slot(queue.posted) + shift
        self.memory.write(address, frame)
        self.describe(queue, address, length, flags)
        queue.expected.append(frame)
        queue.reads += pages(address, length)

    def room(self, queue: Queue) -> int:
        """Descriptors that the host may write: as the driver counts, from the head word in its memory."""
        slots = 480000 // SLOT_BYTES
        return min(queue.entries, slots) - (queue.posted - self.head(queue))

    def check_frames(self) -> None:
        """Takes what came out of the wire and compares it with what was posted."""
        for number, frame in self.frames:
            queue = self.queues[number]
            assert queue.expected, f"queue {number}: a frame nobody posted, {len(frame)} bytes"
            wanted = queue.expected.popleft()
            assert frame == wanted, (
                f"queue {number}, frame {queue.received}: {len(frame)} for {len(wanted)} bytes"
            )
            queue.received += 1
        self.frames.clear()

    async def settle(self, limit: int = 60000) -> None:
        """Until everything that was posted is out and reported."""
        for waited in range(limit):
            self.check_frames()
            if all(not queue.expected and self.head(queue) == queue.posted for queue in self.queues.values()):
                return
            await RisingEdge(self.dut.clk_i)
        stuck = {q.number: (q.posted, q.received, self.head(q)) for q in self.queues.values()}
        raise AssertionError(f"stuck after {waited} cycles: (posted, received, head) {stuck}")
