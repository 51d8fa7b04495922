"""The whole port with lines written to its BAR two a cycle: queues brought up through registers, frames on two wires."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from pair.bench import (
    ALL_BYTES,
    CAUSES,
    LINE_BYTES,
    NIC_PKG,
    PARAMETERS,
    QUEUE_BITS,
    QUEUES,
    Sender,
    masked,
    named,
    pack,
)
from usplus.host import constant

LANES = PARAMETERS["Lanes"]
WORD_BYTES = 8
INTERFACES = named("QueueControlIface")
# Where windows begin, and how far apart they are: what nic_top works out of 2 MiB of registers and windows of a page.
APERTURE, STRIDE = 1 << 21, max(4096, PARAMETERS["WindowLines"] * LINE_BYTES)
ADDRESS_BITS = 22
# Host memory: a line a queue for its credit word.
CREDITS_AT = 1 << 32
EOP = constant("KpioEopDefault")


@dataclass
class Line:
    """A line of a posted write."""

    address: int
    data: int
    enables: int = ALL_BYTES
    first: bool = True
    last: bool = True
    is_mmio: bool = False


class KpioSender(Sender):
    """A writer of kPIO+WC: lines in order, the rest of the last one signatures."""

    def put(self, frame: bytes, rng: random.Random) -> None:
        """A frame to be sent, of whole words."""
        whole = frame + EOP.to_bytes(WORD_BYTES, "little") * (8 - len(frame) // WORD_BYTES % 8)
        self.lines += [whole[i : i + LINE_BYTES] for i in range(0, len(whole), LINE_BYTES)]
        self.expected.append(frame)
        self.shuffles = False


class Port:
    """nic_top, a source of lines and register accesses in front, wires and host memory behind."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.window, self.span = PARAMETERS["WindowLines"], PARAMETERS["SpanLines"]
        self.senders: dict[int, Sender] = {}
        self.epochs: Counter[int] = Counter()
        self.cycle = 0
        # Lines that come next, before those of the senders, and those that stand at the port.
        self.next_lines: deque[Line] = deque()
        self.offered: list[Line | None] = [None] * LANES
        self.split_share = self.burst_share = 0.0
        self.full_share = 1.0
        self.wire_share = [1.0] * LANES
        self.memory_share = 1.0
        self.is_held = False
        self.choose: Callable[[list[int], int], int] = lambda queues, _: self.random.choice(queues)
        # What happened: lines taken and beats left by cycle, writes taken, frames cut short.
        self.taken: Counter[int] = Counter()
        self.beats: Counter[int] = Counter()
        self.frames: Counter[int] = Counter()
        self.bytes_left: Counter[int] = Counter()
        self.written: Counter[str] = Counter()
        self.partial = [b""] * LANES
        self.aborted = [0] * LANES
        self.may_abort = False
        self.reads: deque[tuple[int, int]] = deque()
        self.answers: dict[int, int] = {}
        self.next_tag = 0

    async def open(self, pool_lines: int = PARAMETERS["PoolLines"]) -> None:
        """Clock, straps and reset; then the device is enabled."""
        dut = self.dut
        for name in ("wr_valid", "wr_address", "wr_data", "wr_be", "wr_first", "wr_last", "rd_valid", "rd_address"):
            getattr(dut, name + "_i").value = 0
        for name in ("rd_tag", "frame_pause", "frame_ready", "rx_valid", "rx_data", "rx_bytes", "rx_last", "now_ns"):
            getattr(dut, name + "_i").value = 0
        for name in ("valid", "tag", "data", "last", "error"):
            getattr(dut, f"rdcpl_{name}_i").value = 0
        for name in ("rc_ready", "dmawr_ready", "rdreq_ready", "irq_ready", "rx_lossless"):
            getattr(dut, name + "_i").value = 1
        dut.strap_window_lines_i.value = self.window
        dut.strap_span_lines_i.value = self.span
        dut.strap_contexts_i.value = PARAMETERS["NumContexts"]
        dut.strap_pool_lines_i.value = pool_lines
        dut.strap_max_frame_bytes_i.value = constant("MaxFrameBytes")
        dut.strap_mac_i.value = 0x0200_0000_0001
        dut.rst_ni.value = 0
        Clock(dut.clk_i, 4, unit="ns").start()
        await self.cycles(3)
        dut.rst_ni.value = 1
        cocotb.start_soon(self._run())
        assert await self.read(constant("MagicOffset")) == constant("MagicReset")
        self.control(enable=1)

    async def cycles(self, count: int) -> None:
        """Lets clock cycles pass."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    async def until(self, what: str, done: Callable[[], bool], limit: int = 60_000) -> None:
        """Waits for something to become true."""
        for _ in range(limit):
            if done():
                return
            await RisingEdge(self.dut.clk_i)
        raise AssertionError(f"{what}: not after {limit} cycles")

    # ------------------------------------------------------------------------------ registers
    def write(self, offset: int, value: int) -> None:
        """A register write behind all that was asked for before it; nobody waits for it."""
        at = offset % LINE_BYTES
        enables = 0xFF << at
        self.next_lines.append(Line(offset - at, value << (8 * at), enables))

    async def read(self, offset: int) -> int:
        """A register, behind the writes that were asked for before."""
        await self.until("writes are taken", lambda: not self.next_lines and self.is_quiet())
        return await self.read_now(offset)

    async def read_now(self, offset: int) -> int:
        """A register, behind the writes that were taken."""
        tag = self.next_tag
        self.next_tag += 1
        self.reads.append((offset, tag))
        await self.until("a register is read", lambda: tag in self.answers, 4000)
        return self.answers.pop(tag)

    def is_quiet(self) -> bool:
        """No line that a test asked for stands at the port."""
        return not any(line is not None and not line.is_mmio for line in self.offered)

    def control(self, **fields: int) -> None:
        """The device's control register."""
        self.write(constant("ControlOffset"), pack(NIC_PKG, "reg_control_t", **fields))

    def set(self, queue: int, name: str, value: int) -> None:
        """A register of a queue."""
        self.write(constant("QueueOffset") + queue * constant("QueueStride") + constant(f"Queue{name}Offset"), value)

    async def get(self, queue: int, name: str) -> int:
        """A register of a queue."""
        at = constant("QueueOffset") + queue * constant("QueueStride") + constant(f"Queue{name}Offset")
        return await self.read(at)

    async def counter(self, name: str) -> int:
        """A counter of the device."""
        return await self.read(constant("CountersOffset") + constant(f"Counter{name}Offset"))

    async def status(self, queue: int) -> tuple[bool, str]:
        """Whether a queue is active, and why it failed."""
        word = await self.get(queue, "Status")
        return bool(word & 1), CAUSES[word >> 4 & 15]

    # ------------------------------------------------------------------------------ queues
    def start(self, queue: int, interface: str = "Mmio", credit_lines: int = 1, **fields: int) -> Sender:
        """Writes a queue's registers, and gives its writer, whose lines come right behind."""
        self.epochs[queue] += 1
        kind = KpioSender if interface == "Kpio" else Sender
        sender = kind(queue, self.window, self.span, self.epochs[queue] % 256)
        self.set(queue, "CreditAddress", CREDITS_AT + queue * LINE_BYTES)
        self.set(queue, "CreditCoalesce", pack(NIC_PKG, "reg_credit_coalesce_t", lines=credit_lines, time_ns=100))
        self.set(queue, "KpioEop", EOP)
        control = {"enable": 1, "iface": INTERFACES[interface], "epoch": sender.epoch, "weight": 1, **fields}
        self.set(queue, "Control", pack(NIC_PKG, "reg_queue_control_t", **control))
        self.senders[queue] = sender
        return sender

    async def stop(self, queue: int) -> None:
        """Disables a queue and waits until it has stopped; its frames may leave until then."""
        self.senders[queue].lines = []
        self.set(queue, "Control", 0)
        is_active, _ = await self.status(queue)
        assert not is_active
        del self.senders[queue]

    def lines_of(self, queue: int, at: int, parts: list[int]) -> list[Line]:
        """Pieces of a queue's line, each a write; what is not written may be anything."""
        sender = self.senders[queue]
        address = APERTURE + queue * STRIDE + at % self.window * LINE_BYTES
        is_mmio = not isinstance(sender, KpioSender)
        whole = int.from_bytes(sender.lines[at], "little")
        kept = [whole if part == ALL_BYTES else masked(sender.lines[at], part, self.random) for part in parts]
        return [Line(address, data, part, is_mmio=is_mmio) for data, part in zip(kept, parts, strict=True)]

    async def drained(self) -> None:
        """Until every queue has sent all and has its lines back."""
        await self.until(
            f"queues end: {[(s.queue, len(s.lines), s.freed, len(s.expected)) for s in self.senders.values()]}",
            lambda: not self.next_lines and all(sender.is_done() for sender in self.senders.values()),
        )
        await self.until("the port is idle", lambda: bool(int(self.dut.is_idle_o.value)))

    # ------------------------------------------------------------------------------ cycle by cycle
    async def _run(self) -> None:
        dut = self.dut
        reading: tuple[int, int] | None = None
        while True:
            self._offer()
            if reading is None and self.reads:
                reading = self.reads.popleft()
                dut.rd_address_i.value, dut.rd_tag_i.value = reading
            dut.rd_valid_i.value = int(reading is not None)
            dut.frame_ready_i.value = sum((self.random.random() < self.wire_share[e]) << e for e in range(LANES))
            dut.dmawr_ready_i.value = int(self.random.random() < self.memory_share)
            dut.now_ns_i.value = self.cycle * 4
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if any(self.offered) and int(dut.wr_ready_o.value):
                self._taken()
            if reading is not None and int(dut.rd_ready_o.value):
                reading = None
            if int(dut.rc_valid_o.value):
                self.answers[int(dut.rc_tag_o.value)] = int(dut.rc_value_o.value)
            if taken := int(dut.frame_valid_o.value) & int(dut.frame_ready_i.value):
                self._beats(taken)
            if int(dut.dmawr_valid_o.value) and int(dut.dmawr_ready_i.value):
                self._credit(int(dut.dmawr_address_o.value), int(dut.dmawr_data_o.value))

    def _line(self, place: int) -> Line | None:
        """The next line of whoever is chosen; some come in two pieces, some with those behind them in one write."""
        if self.next_lines:
            return self.next_lines.popleft()
        queues = [] if self.is_held else list(self.senders)
        while queues:
            queue = self.choose(queues, place)
            sender = self.senders[queue]
            at = sender.next(self.random)
            if at is None:
                queues.remove(queue)
                continue
            if self.random.random() < self.split_share and not isinstance(sender, KpioSender):
                cut = self.random.randrange(1, LINE_BYTES)
                parts = [(1 << cut) - 1, ALL_BYTES & ~((1 << cut) - 1)]
                self.random.shuffle(parts)
                self.next_lines += self.lines_of(queue, at, parts)
            else:
                burst = self.lines_of(queue, at, [ALL_BYTES])
                while self.random.random() < self.burst_share and not sender.shuffles and (at + 1) % self.window:
                    if (at := sender.next(self.random) or 0) == 0:
                        break
                    burst += self.lines_of(queue, at, [ALL_BYTES])
                for i, line in enumerate(burst):
                    line.first, line.last = i == 0, i == len(burst) - 1
                self.next_lines += burst
            return self.next_lines.popleft()
        return None

    def _offer(self) -> None:
        """As many lines as there are lanes, where there are; any place may stay empty."""
        if any(self.offered):
            return
        for i in range(LANES):
            if self.random.random() < self.full_share:
                self.offered[i] = self._line(i)
        valid = address = data = enables = first = last = 0
        for i, line in enumerate(self.offered):
            if line is None:
                continue
            valid |= 1 << i
            address |= line.address << (i * ADDRESS_BITS)
            data |= line.data << (i * LINE_BYTES * 8)
            enables |= line.enables << (i * LINE_BYTES)
            first |= line.first << i
            last |= line.last << i
        dut = self.dut
        dut.wr_valid_i.value = valid
        if valid:
            dut.wr_address_i.value = address
            dut.wr_data_i.value = data
            dut.wr_be_i.value = enables
            dut.wr_first_i.value = first
            dut.wr_last_i.value = last

    def _taken(self) -> None:
        for line in self.offered:
            if line is not None:
                self.taken[self.cycle] += 1
                if line.is_mmio:
                    self.written["writes"] += line.last
                    self.written["bytes"] += line.enables.bit_count()
        self.offered = [None] * LANES

    def _beats(self, taken: int) -> None:
        dut = self.dut
        queues, counts, data = (int(getattr(dut, f"frame_{n}_o").value) for n in ("queue", "bytes", "data"))
        last, abort = int(dut.frame_last_o.value), int(dut.frame_abort_o.value)
        for e in range(LANES):
            if not taken >> e & 1:
                continue
            queue = queues >> (e * QUEUE_BITS) & ((1 << QUEUE_BITS) - 1)
            beat = (data >> (e * 512) & ((1 << 512) - 1)).to_bytes(LINE_BYTES, "little")
            self.beats[self.cycle] += 1
            self.partial[e] += beat[: counts >> (e * 7) & 127]
            if not last >> e & 1:
                continue
            if abort >> e & 1:
                assert self.may_abort, f"stream {e} cuts a frame of queue {queue} short"
                self.aborted[e] += 1
            else:
                self._frame(e, queue, self.partial[e])
            self.partial[e] = b""

    def _frame(self, stream: int, queue: int, frame: bytes) -> None:
        sender = self.senders[queue]
        is_odd_mmio = LANES == 2 and queue % 2 == 1 and not isinstance(sender, KpioSender)
        assert stream == int(is_odd_mmio), f"queue {queue} leaves on stream {stream}"
        is_next = bool(sender.expected) and sender.expected[0] == frame
        assert is_next, f"queue {queue} sends its frames in order, unchanged"
        sender.expected.popleft()
        sender.left += 1
        self.frames[stream] += 1
        self.bytes_left[stream] += len(frame)

    def _credit(self, address: int, data: int) -> None:
        queue, rest = divmod(address - CREDITS_AT, LINE_BYTES)
        assert rest == 0 and 0 <= queue < QUEUES, f"a write to {address:#x}"
        if queue not in self.senders:
            return
        sender = self.senders[queue]
        count = data & 0xFFFF_FFFF
        assert sender.freed <= count <= sender.first_open, f"queue {queue}: {count} lines free after {sender.freed}"
        sender.freed = count
