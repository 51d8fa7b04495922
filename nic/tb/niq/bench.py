"""Entries in the BAR between a host and a wire, for the tests of this folder."""

from __future__ import annotations

import os
import random
import re
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge
from dma.engine import Engine
from dma.host import LINE_BYTES, PERIOD_NS, Habits, Memory, ReadPort, WritePort, run_bench

ROOT = Path(os.environ["BENCH_ROOT"])
PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
LINES = 1 << PARAMETERS["LineW"]
BASE = 0x3_0000_0000
QUEUE_BYTES = 1 << 18
BUFFERS_AT, SLOT_BYTES = 4096, 12288
MAX_FRAME, MIN_FRAME, HEAD_BYTES = 9216, 14, 16
WHOLE, ADDRESS, NOTHING = 1, 2, 3
NIQ = 6
ALL_BYTES = (1 << LINE_BYTES) - 1
FAULTS = ("runts", "bad_lengths", "bad_headers", "dma_errors", "clobbers", "overruns", "span_exceeded", "hole_timeouts")


def package(name: str) -> str:
    """The text of a package of the design."""
    return (ROOT / {"nic_pkg": "spec/generated/sv/nic_pkg.sv"}.get(name, f"nic/rtl/{name}.sv")).read_text()


def snake(name: str) -> str:
    """A name of the package as Python writes it."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def causes() -> dict[int, str]:
    """Names of the causes of failures by their values."""
    found = re.findall(r"QueueStatusCause(\w+) = 4'h([0-9a-f]+)", package("nic_pkg"))
    return {int(value, 16): snake(name) for name, value in found}


def counter_places() -> dict[int, str]:
    """Names of the counters by their place in the block."""
    found = re.findall(r"Counter(\w+)Offset = 32'h([0-9a-f]+)", package("nic_pkg"))
    return {int(value, 16) // 8: snake(name) for name, value in found}


def pack_settings(**fields: int) -> int:
    """A queue_settings_t with these fields; the others are 0."""
    body = re.search(r"typedef struct packed \{(.*?)\} queue_settings_t;", package("nic_rtl_pkg"), re.DOTALL)
    assert body, "queue_settings_t is in nic_rtl_pkg"
    word, left = 0, dict(fields)
    for high, name in re.findall(r"logic\s+(?:\[(\d+):0\])?\s*(\w+);", body[1]):
        width = int(high or 0) + 1
        value = left.pop(name, 0)
        assert value < 1 << width, f"{name} has {width} bits"
        word = word << width | value
    assert not left, f"no fields {list(left)}"
    return word


def header(length: int, kind: int, epoch: int, position: int, wants_irq: bool = False) -> int:
    """The first word of an entry."""
    return length | kind << 16 | int(wants_irq) << 20 | epoch << 24 | (position & 0x7FFF_FFFF) << 32


@dataclass
class Queue:
    """The sender's half of a queue."""

    number: int
    epoch: int
    entry_lines: int
    window_lines: int
    written: int = 0
    stores: deque[tuple[int, bytes, int]] = field(default_factory=deque)
    expected: deque[bytes] = field(default_factory=deque)
    received: int = 0

    @property
    def at(self) -> int:
        return BASE + self.number * QUEUE_BYTES

    @property
    def entries(self) -> int:
        return self.window_lines // self.entry_lines

    @property
    def room(self) -> int:
        return self.entry_lines * LINE_BYTES - HEAD_BYTES

    def slot(self, index: int) -> int:
        return self.at + BUFFERS_AT + index % ((QUEUE_BYTES - BUFFERS_AT) // SLOT_BYTES) * SLOT_BYTES

    def line(self, index: int) -> int:
        """The window's line at which entry `index` begins."""
        return index % self.entries * self.entry_lines


class Bench(Engine):
    """The engine with its host and wire."""

    def __init__(self, dut: SimHandleBase, seed: int, habits: Habits | None = None) -> None:
        self.dut = dut
        self.rng = random.Random(seed)
        self.habits = habits or Habits()
        self.count = min(PARAMETERS["NumQueues"], 8)
        self.memory = Memory(BASE, QUEUE_BYTES * self.count)
        self.reads = ReadPort(dut, dut.clk_i, self.memory, self.habits, self.rng)
        self.writes = WritePort(dut, dut.clk_i, self.memory, self.habits, self.rng)
        self.queues: dict[int, Queue] = {}
        self.frames: list[tuple[int, bytes]] = []
        self.frame_ready = 0.8
        self.counters: Counter[str] = Counter()
        self.places = counter_places()
        self.causes = causes()
        self.failed: list[tuple[int, str]] = []
        self.interrupts: list[int] = []
        self.now = 0
        self.cycle = 0
        self.window_lines = LINES

    # ---- The clock, and what else listens.
    async def watch(self) -> None:
        dut = self.dut
        dut.failed_ready_i.value = 1
        dut.irq_ready_i.value = 1
        while True:
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            self.now += PERIOD_NS
            dut.now_ns_i.value = self.now
            if not int(dut.rst_ni.value):
                continue
            increments = int(dut.increments_o.value)
            place = 0
            while increments:
                if increments & 0xFF:
                    self.counters[self.places.get(place, str(place))] += increments & 0xFF
                increments >>= 8
                place += 1
            if int(dut.failed_valid_o.value):
                self.failed.append((int(dut.failed_queue_o.value), self.causes[int(dut.failed_cause_o.value)]))
            if int(dut.irq_valid_o.value):
                self.interrupts.append(int(dut.irq_queue_o.value))

    async def begin(self, window_lines: int = LINES) -> None:
        dut = self.dut
        self.window_lines = window_lines
        for name in ("start_valid", "stop_valid", "start_queue", "stop_queue", "start_settings", "piece_valid"):
            getattr(dut, name + "_i").value = 0
        for name in ("piece_queue", "piece_line", "piece_data", "piece_be", "piece_first", "piece_last", "now_ns"):
            getattr(dut, name + "_i").value = 0
        dut.window_mask_i.value = window_lines - 1
        dut.max_frame_bytes_i.value = MAX_FRAME
        dut.rst_ni.value = 0
        self.reads.idle()
        run_bench(dut, self.reads.run(), self.writes.run(), self.wire(), self.watch())
        await self.reset()

    async def reset(self) -> None:
        self.dut.piece_valid_i.value = 0
        await super().reset()

    # ---- What a host does.
    async def start(self, number: int, entry_lines: int = 1, epoch: int = 3, **more: int) -> Queue:
        queue = Queue(number, epoch, entry_lines, self.window_lines)
        self.queues[number] = queue
        self.memory.put_word(queue.at + 8, 0)
        fields = {
            "iface": NIQ,
            "epoch": epoch,
            "entry_lines_log2": entry_lines.bit_length() - 1,
            "tx_head_address": queue.at + 8,
            "tx_moderation_frames": 1,
        }
        await self.start_with(number, pack_settings(**(fields | more)))
        return queue

    def head(self, queue: Queue) -> int:
        return self.memory.word(queue.at + 8)

    def entry(self, queue: Queue, word: int, second: int, payload: bytes) -> list[tuple[int, bytes, int]]:
        """An entry cut into pieces in any order: line, data, enables."""
        data = word.to_bytes(8, "little") + second.to_bytes(8, "little") + payload
        data += self.rng.randbytes(queue.entry_lines * LINE_BYTES - len(data))
        at = queue.line(queue.written)
        pieces = []
        for line in range(queue.entry_lines):
            bytes64 = data[line * LINE_BYTES :][:LINE_BYTES]
            masks = [ALL_BYTES]
            for _ in range(self.rng.choice([0, 0, 1, 3])):
                mask = self.rng.choice([self.rng.getrandbits(64), ALL_BYTES >> self.rng.randrange(64)])
                masks = [part for old in masks for part in (old & mask, old & ~mask) if part]
            # What is not enabled may be anything.
            for mask in masks:
                noise = self.rng.randbytes(LINE_BYTES)
                mixed = bytes(bytes64[i] if mask >> i & 1 else noise[i] for i in range(LINE_BYTES))
                pieces.append((at + line, mixed, mask))
        self.rng.shuffle(pieces)
        queue.written += 1
        return pieces

    def send(self, queue: Queue, length: int, shift: int = 0, wants_irq: bool = False) -> None:
        """A frame, whole if it fits and by address if not; its pieces are stored by `store`."""
        frame = self.rng.randbytes(length)
        is_whole = length <= queue.room
        word = header(length, WHOLE if is_whole else ADDRESS, queue.epoch, queue.written, wants_irq)
        address = 0
        if not is_whole:
            address = queue.slot(queue.written) + shift
            self.memory.write(address, frame)
        queue.stores.extend(self.entry(queue, word, address, frame if is_whole else b""))
        queue.expected.append(frame)

    def send_nothing(self, queue: Queue) -> None:
        word = header(self.rng.choice([0, 5, 100]), NOTHING, queue.epoch, queue.written)
        queue.stores.extend(self.entry(queue, word, self.rng.getrandbits(64), b""))

    def offer(self, queue: Queue) -> None:
        """Puts the next piece of a queue at the port; each is a write of its own."""
        line, data, enables = queue.stores.popleft()
        self.put_piece(queue.number, line, data, enables)

    def put_piece(
        self, number: int, line: int, data: bytes, enables: int, first: int = 1, last: int = 1
    ) -> None:
        dut = self.dut
        dut.piece_valid_i.value = 1
        dut.piece_queue_i.value = number
        dut.piece_line_i.value = line
        dut.piece_data_i.value = int.from_bytes(data, "little")
        dut.piece_be_i.value = enables
        dut.piece_first_i.value = first
        dut.piece_last_i.value = last

    async def taken(self, limit: int = 5000) -> bool:
        """Waits until the piece at the port is taken."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            if int(self.dut.piece_ready_o.value):
                self.dut.piece_valid_i.value = 0
                return True
        return False

    async def store(self, queue: Queue, count: int | None = None) -> None:
        """Stores pieces of a queue, all if none are counted."""
        while queue.stores and count != 0:
            self.offer(queue)
            assert await self.taken(), "a piece is not taken"
            count = None if count is None else count - 1
            if self.rng.random() < 0.1:
                await self.cycles(self.rng.randrange(5))

    def room(self, queue: Queue) -> int:
        slots = (QUEUE_BYTES - BUFFERS_AT) // SLOT_BYTES
        return min(queue.entries, slots) - (queue.written - self.head(queue))

    def check_frames(self) -> None:
        """Takes what came out of the wire and compares it with what was sent."""
        for number, frame in self.frames:
            queue = self.queues[number]
            assert queue.expected, f"queue {number}: a frame nobody sent, {len(frame)} bytes"
            wanted = queue.expected.popleft()
            assert frame == wanted, (
                f"queue {number}, frame {queue.received}: {len(frame)} for {len(wanted)} bytes"
            )
            queue.received += 1
        self.frames.clear()

    async def settle(self, limit: int = 60000) -> None:
        """Until everything that was stored is out and reported."""
        for waited in range(limit):
            self.check_frames()
            if all(not queue.expected and self.head(queue) == queue.written for queue in self.queues.values()):
                return
            await RisingEdge(self.dut.clk_i)
        stuck = {q.number: (q.written, q.received, self.head(q)) for q in self.queues.values()}
        raise AssertionError(f"stuck after {waited} cycles: (written, received, head) {stuck}")
