"""The receive engine between a wire and a host, for the tests of this folder."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field

from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge
from dma.engine import Engine
from dma.host import LINE_BYTES, PERIOD_NS, Habits, Memory, QueueSettings, ReadPort, WritePort, run_bench

from rx.steer_twin import flow_hash

BASE = 0x5_0000_0000
# Lines of a queue's window: those of its entries.
WINDOW_LINES = 16
QUEUE_BYTES = 1 << 19
COMPLETIONS_AT, BUFFERS_AT = 65536, 131072
MAX_FRAME = 9216
OFF, RING, DESCRIPTORS, PIPE = 0, 1, 2, 3
CAUSE_DMA_ERROR, CAUSE_BAD_LENGTH = 8, 9
COUNTERS = (
    "bad_accesses",
    "descriptor_fetches",
    "completions",
    "dma_errors",
    "bad_lengths",
    "rx_frames",
    "rx_frame_bytes",
    "rx_no_space",
    "rx_oversize",
    "notifications",
    "entry_reads",
    "held_reads",
    "held_read_timeouts",
)


@dataclass
class Queue:
    """The host's half of a queue: a contiguous ring, buffers, or a pipe with its notifications."""

    memory: Memory
    number: int
    mode: int
    entries: int
    buffer_bytes: int = 2048
    notes: int = 0
    told: int = 0
    tail: int = 0
    next: int = 0
    received: int = 0
    expected: deque[bytes] = field(default_factory=deque)

    @property
    def at(self) -> int:
        return BASE + self.number * QUEUE_BYTES

    def clear(self) -> None:
        """What the driver does before it enables the queue."""
        self.memory.write(self.at, bytes(BUFFERS_AT))
        if self.mode in (RING, PIPE):
            self.memory.write(self.at, bytes(self.entries * LINE_BYTES))
        elif self.mode == DESCRIPTORS:
            for entry in range(self.entries):
                self.lend(entry, self.buffer(entry), self.buffer_bytes)

    def buffer(self, entry: int) -> int:
        return self.at + BUFFERS_AT + entry * (self.buffer_bytes + 3)

    def lend(self, entry: int, address: int, length: int) -> None:
        self.memory.write(self.at + entry * 16, address.to_bytes(8, "little") + length.to_bytes(8, "little"))

    def poll(self) -> bytes | None:
        """The next frame, if its word says so; frees what it took."""
        if self.mode == PIPE:
            return self.poll_pipe()
        return self.poll_ring() if self.mode == RING else self.poll_buffers()

    def look(self) -> None:
        """Takes the notifications of a pipe that have come."""
        while True:
            word = self.memory.word(self.at + COMPLETIONS_AT + self.told % self.notes * 8)
            lap = 1 - (self.told // self.notes & 1)
            if word == 0 or word >> 48 & 1 != lap:
                break
            assert word >> 49 == 0 and word >> 32 & 0xFFFF == self.number, f"notification {word:#x}"
            self.tail += (word - self.tail) & 0xFFFF_FFFF
            self.told += 1

    def poll_pipe(self) -> bytes | None:
        """A frame of those that were told of."""
        self.look()
        if self.next == self.tail:
            return None
        frame = self.take_pipe()
        assert self.next <= self.tail, "a notification in the middle of a frame"
        return frame

    def take_pipe(self) -> bytes:
        """The next frame of a pipe, which is there."""
        at = self.at + self.next % self.entries * LINE_BYTES
        length = self.memory.word(at)
        assert 0 < length <= MAX_FRAME, f"pipe header {length:#x}"
        lines = -(-(8 + length) // LINE_BYTES)
        places = [self.at + (self.next + i) % self.entries * LINE_BYTES for i in range(lines)]
        whole = b"".join(self.memory.read(place, LINE_BYTES) for place in places)
        self.next += lines
        return whole[8 : 8 + length]

    def poll_ring(self) -> bytes | None:
        def at(line: int) -> int:
            return self.at + line % self.entries * LINE_BYTES

        word = self.memory.word(at(self.next))
        if word == 0:
            return None
        length = word & 0xFFFF_FFFF
        assert word >> 32 == 1, f"header {word:#x}"
        lines = -(-(8 + length) // LINE_BYTES)
        whole = b"".join(self.memory.read(at(self.next + i), LINE_BYTES) for i in range(lines))
        for i in range(lines):
            self.memory.put_word(at(self.next + i), 0)
        self.next += lines
        return whole[8 : 8 + length]

    def poll_buffers(self) -> bytes | None:
        entry = self.next % self.entries
        word = self.memory.word(self.at + COMPLETIONS_AT + entry * 8)
        if word >> 32 != 1 - (self.next // self.entries & 1):
            return None
        self.next += 1
        address = int.from_bytes(self.memory.read(self.at + entry * 16, 8), "little")
        length = word & 0xFFFF_FFFF
        return self.memory.read(address, length) if length else b""


class Bench(Engine):
    """The engine with its wire and host."""

    RESETS = ("link_rst_ni", "rst_ni")

    def __init__(
        self, dut: SimHandleBase, seed: int, habits: Habits | None = None, lossless: bool = True
    ) -> None:
        self.dut = dut
        self.rng = random.Random(seed)
        self.habits = habits or Habits()
        self.lossless = lossless
        self.count = 1 << len(dut.start_queue_i)
        self.memory = Memory(BASE, QUEUE_BYTES * min(self.count, 64))
        self.reads = ReadPort(dut, dut.clk_i, self.memory, self.habits, self.rng)
        self.writes = WritePort(dut, dut.clk_i, self.memory, self.habits, self.rng)
        self.queues: dict[int, Queue] = {}
        self.to_send: deque[bytes] = deque()
        self.sent: list[bytes] = []
        self.wire_valid = 0.9
        self.counters: Counter[str] = Counter()
        self.failed: list[tuple[int, int]] = []
        self.interrupts: list[int] = []
        self.now = 0
        self.cycle = 0
        self.asked: deque[tuple[int, int, int]] = deque()
        self.answers: deque[tuple[int, int]] = deque()
        self.answer_ready = 0.8

    # ---- The wire, the clock, and what else listens.
    async def wire(self) -> None:
        dut = self.dut
        dut.frame_valid_i.value = 0
        frame, offset, offered = b"", 0, False
        while True:
            await RisingEdge(dut.clk_i)
            if not int(dut.rst_ni.value):
                frame, offset, offered = b"", 0, False
                dut.frame_valid_i.value = 0
                continue
            if offered and int(dut.frame_ready_o.value):
                offered = False
                offset += LINE_BYTES
                if offset >= len(frame):
                    self.sent.append(frame)
                    frame = b""
            if not offered:
                if not frame and self.to_send:
                    frame, offset = self.to_send.popleft(), 0
                offered = bool(frame) and self.rng.random() < self.wire_valid
                if offered:
                    beat = frame[offset : offset + LINE_BYTES]
                    dut.frame_data_i.value = int.from_bytes(beat, "little")
                    dut.frame_bytes_i.value = len(beat)
                    dut.frame_last_i.value = int(offset + LINE_BYTES >= len(frame))
                dut.frame_valid_i.value = int(offered)

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
            if int(dut.answer_valid_o.value) and int(dut.answer_ready_i.value):
                self.answers.append((int(dut.answer_tag_o.value), int(dut.answer_value_o.value)))
            dut.answer_ready_i.value = int(self.rng.random() < self.answer_ready)
            for name in COUNTERS:
                self.counters[name] += int(getattr(dut, f"count_{name}_o").value)
            if int(dut.failed_valid_o.value):
                self.failed.append((int(dut.failed_queue_o.value), int(dut.failed_cause_o.value)))
            if int(dut.irq_valid_o.value):
                self.interrupts.append(int(dut.irq_queue_o.value))

    async def ask(self) -> None:
        """Hands the reads of entries in: queue, word of its window, tag."""
        dut = self.dut
        dut.read_valid_i.value = 0
        while True:
            await RisingEdge(dut.clk_i)
            if int(dut.read_valid_i.value) and int(dut.read_ready_o.value):
                self.asked.popleft()
            dut.read_valid_i.value = int(bool(self.asked))
            if self.asked:
                dut.read_queue_i.value, dut.read_word_i.value, dut.read_tag_i.value = self.asked[0]

    async def begin(self) -> None:
        dut = self.dut
        for name in ("start_valid_i", "stop_valid_i", "start_queue_i", "stop_queue_i", "doorbell_valid_i"):
            getattr(dut, name).value = 0
        for name in ("start_settings_i", "doorbell_queue_i", "doorbell_freed_i", "now_ns_i", "frame_data_i"):
            getattr(dut, name).value = 0
        for name in ("read_queue_i", "read_word_i", "read_tag_i", "entries_freed_valid_i", "clear_i"):
            getattr(dut, name).value = 0
        dut.window_mask_i.value = WINDOW_LINES - 1
        dut.answer_ready_i.value = 0
        dut.frame_bytes_i.value = 1
        dut.frame_last_i.value = 0
        dut.lossless_i.value = int(self.lossless)
        dut.rst_ni.value = 0
        dut.link_rst_ni.value = 0
        self.reads.idle()
        run_bench(dut, self.reads.run(), self.writes.run(), self.wire(), self.watch(), self.ask())
        await self.reset()

    async def reset(self) -> None:
        self.asked.clear()
        await super().reset()

    async def reset_device(self) -> None:
        """The device is reset while the link runs on."""
        self.dut.rst_ni.value = 0
        self.dut.clear_i.value = 1
        await self.cycles(1)
        self.dut.rst_ni.value = 1
        self.dut.clear_i.value = 0
        await self.idle()

    # ---- What a host does.
    async def start(
        self, number: int, mode: int, entries: int, buffer_bytes: int = 2048, **more: int
    ) -> Queue:
        queue = Queue(self.memory, number, mode, entries, buffer_bytes, more.get("rx_notify_entries", 0))
        fields = {
            "rx_mode": mode,
            "rx_ring_address": queue.at,
            "rx_ring_entries": entries,
            "rx_completion_address": queue.at + COMPLETIONS_AT,
            "rx_moderation_frames": 1,
        }
        if not {"rx_ring_address", "rx_ring_entries", "rx_mode"} & more.keys():
            queue.clear()
        self.queues[number] = queue
        await self.start_with(number, QueueSettings(**(fields | more)).packed())
        return queue

    async def ring(self, number: int, freed: int) -> None:
        self.dut.doorbell_queue_i.value = number
        self.dut.doorbell_freed_i.value = freed
        self.dut.doorbell_valid_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.doorbell_valid_i.value = 0

    async def free_entries(self, number: int, freed: int) -> None:
        dut = self.dut
        dut.entries_freed_queue_i.value = number
        dut.entries_freed_count_i.value = freed
        dut.entries_freed_valid_i.value = 1
        await RisingEdge(dut.clk_i)
        dut.entries_freed_valid_i.value = 0
        await self.cycles(2)

    def send(self, frame: bytes, numbers: list[int] | None = None) -> None:
        """Puts a frame on the wire and notes whose it will be, of the queues that receive."""
        self.to_send.append(frame)
        numbers = sorted(self.queues) if numbers is None else numbers
        owner = numbers[flow_hash(frame) % len(numbers)] if len(numbers) > 1 else numbers[0]
        self.queues[owner].expected.append(frame)

    def check_frames(self, limit: int = 1 << 30) -> int:
        """Takes what has arrived in host memory and compares it with what was sent."""
        taken = 0
        for queue in self.queues.values():
            while taken < limit:
                frame = queue.poll()
                if frame is None:
                    break
                taken += 1
                if frame == b"":
                    continue
                assert queue.expected, f"queue {queue.number}: a frame nobody sent, {len(frame)} bytes"
                wanted = queue.expected.popleft()
                assert frame == wanted, (
                    f"queue {queue.number}, frame {queue.received}: {len(frame)} for {len(wanted)} bytes"
                )
                queue.received += 1
        return taken

    async def settle(self, limit: int = 60000) -> None:
        """Until everything that was sent has arrived; frees all the time."""
        told = {number: -1 for number in self.queues}
        for waited in range(limit):
            self.check_frames()
            if not self.to_send and all(not queue.expected for queue in self.queues.values()):
                return
            for number, queue in self.queues.items():
                if told[number] != queue.next:
                    told[number] = queue.next
                    await self.ring(number, queue.next)
            await RisingEdge(self.dut.clk_i)
        stuck = {q.number: (q.received, len(q.expected), q.next) for q in self.queues.values()}
        raise AssertionError(f"stuck after {waited} cycles: (received, missing, next) {stuck}")
