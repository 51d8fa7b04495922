"""The transmit engine of entries that are pushed as well, between a host, its stores and a wire."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge
from descriptor.bench import BASE, BUFFERS_AT, QUEUE_BYTES, RING_AT, Bench, Queue
from dma.host import LINE_BYTES, Habits, QueueSettings

INLINE, CAUSE_BAD_HEADER, CAUSE_DMA_ERROR, CAUSE_BAD_LENGTH = 4, 3, 8, 9
WHOLE, ADDRESS, NOTHING = 1, 2, 3
WORD_BYTES, HEAD_BYTES, HALF_BYTES = 8, 16, 256
MAX_FRAME, MAX_PUSHED, MAX_IN_RING = 9216, 240, 496
WINDOW_LINES = 16
EPOCH = 9

# A store on its way: offset in the window, bytes.
Store = tuple[int, bytes]


def header(length: int, position: int, kind: int = WHOLE, epoch: int = EPOCH, wants_irq: int = 0) -> bytes:
    """The first word of an entry."""
    word = length | kind << 16 | wants_irq << 20 | epoch << 24 | (position & 0x7FFF_FFFF) << 32
    return word.to_bytes(WORD_BYTES, "little")


class EntryBench(Bench):
    """A queue's entries are lines of its ring; `posted` counts them."""

    COUNTS = (
        "bad_accesses",
        "descriptor_fetches",
        "payload_fetches",
        "completions",
        "credit_pushes",
        "runts",
        "bad_headers",
        "bad_lengths",
        "dma_errors",
        "push_taken",
        "push_torn",
        "push_unused",
        "push_tested",
    )

    def __init__(self, dut: SimHandleBase, seed: int, habits: Habits | None = None) -> None:
        super().__init__(dut, seed, habits)
        dut.max_frame_bytes_i.value = MAX_FRAME
        dut.window_mask_i.value = WINDOW_LINES - 1
        dut.piece_valid_i.value = 0
        # Pieces that wait for the port: queue, line, data, byte enables, first, last.
        self.pieces: deque[tuple[int, int, bytes, int, int, int]] = deque()
        self.worst_wait = 0
        self.buffers: Counter[int] = Counter()

    async def begin(self) -> None:
        await super().begin()
        self.pieces.clear()
        if getattr(self, "feeder", None):
            self.feeder.cancel()
        self.feeder = cocotb.start_soon(self.feed())

    async def feed(self) -> None:
        """Gives the pieces to the port, one after the other."""
        dut, waited, shown = self.dut, 0, False
        while True:
            if self.pieces and int(dut.rst_ni.value):
                queue, line, data, enables, first, last = self.pieces[0]
                dut.piece_valid_i.value, shown = 1, True
                dut.piece_queue_i.value = queue
                dut.piece_line_i.value = line
                dut.piece_data_i.value = int.from_bytes(data, "little")
                dut.piece_be_i.value = enables
                dut.piece_first_i.value, dut.piece_last_i.value = first, last
            else:
                dut.piece_valid_i.value, shown = 0, False
            await RisingEdge(dut.clk_i)
            if shown and int(dut.piece_valid_i.value) and int(dut.rst_ni.value):
                waited += 1
                self.worst_wait = max(self.worst_wait, waited)
                if int(dut.piece_ready_o.value):
                    waited = 0
                    if self.pieces:
                        self.pieces.popleft()

    def settings(self, number: int, entries: int, **more: int) -> QueueSettings:
        return super().settings(number, entries, **({"iface": INLINE, "epoch": EPOCH} | more))

    def line_at(self, queue: Queue, position: int) -> int:
        return BASE + queue.number * QUEUE_BYTES + RING_AT + position % queue.entries * LINE_BYTES

    def next_buffer(self, queue: Queue) -> int:
        """Room for a frame that is named by its address."""
        self.buffers[queue.number] += 1
        return BASE + queue.number * QUEUE_BYTES + BUFFERS_AT + self.buffers[queue.number] % 45 * 10240

    def append(self, queue: Queue, data: bytes) -> bytes:
        """Writes whole lines to the ring."""
        data += bytes(-len(data) % LINE_BYTES)
        for start in range(0, len(data), LINE_BYTES):
            self.memory.write(self.line_at(queue, queue.posted), data[start : start + LINE_BYTES])
            queue.posted += 1
        return data

    def entry(self, queue: Queue, length: int, kind: int = WHOLE, wants_irq: int = 0, shift: int = 0) -> bytes:
        """Writes an entry for a frame into the ring; gives its lines. Doorbell and push are the caller's."""
        frame = self.rng.randbytes(length)
        head = header(length, queue.posted, kind, wants_irq=wants_irq)
        if kind == ADDRESS:
            address = self.next_buffer(queue) + shift
            self.memory.write(address, frame)
            entry = head + address.to_bytes(WORD_BYTES, "little")
        else:
            entry = head + bytes(WORD_BYTES) + (frame if kind == WHOLE else b"")
        if kind != NOTHING:
            queue.expected.append(frame)
        return self.append(queue, entry)

    def store(self, number: int, at: int, data: bytes) -> None:
        """A write TLP to the window, as the lines that the ingress makes of it."""
        end = at + len(data)
        first = True
        while at < end:
            line, low = at // LINE_BYTES, at % LINE_BYTES
            size = min(LINE_BYTES - low, end - at)
            padded = bytes(low) + data[:size] + bytes(LINE_BYTES - low - size)
            enables = ((1 << size) - 1) << low
            self.pieces.append((number, line, padded, enables, int(first), int(at + size == end)))
            data, at, first = data[size:], at + size, False

    def stores(self, half: int, entry: bytes) -> list[Store]:
        """An entry as a sender's write-combining buffers may let it go: lines in any order, some in two pieces."""
        parts: list[Store] = []
        for start in range(0, len(entry), LINE_BYTES):
            at, data = half * HALF_BYTES + start, entry[start : start + LINE_BYTES]
            cut = self.rng.choice([LINE_BYTES, LINE_BYTES, self.rng.randrange(1, LINE_BYTES)])
            parts += [(at, data[:cut])] + ([(at + cut, data[cut:])] if cut < LINE_BYTES else [])
        self.rng.shuffle(parts)
        return parts

    def push(self, queue: Queue, half: int, entry: bytes) -> None:
        self.send(queue.number, [(half * HALF_BYTES + at, entry[at : at + 64]) for at in range(0, len(entry), 64)])

    def send(self, number: int, stores: Iterable[Store]) -> None:
        for at, data in stores:
            self.store(number, at, data)

    async def arrived(self) -> None:
        """Until all stores are in and judged."""
        waited = 0
        while self.pieces or not int(self.dut.is_settled_o.value):
            await RisingEdge(self.dut.clk_i)
            waited += 1
            assert waited < 4000, "the window takes nothing"

    def room(self, queue: Queue) -> int:
        return queue.entries - (queue.posted - self.head(queue))
