"""Two mmio engines behind one front: senders that write lines out of order and two a cycle, and all that is told."""

from __future__ import annotations

import os
import random
import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

ROOT = Path(os.environ["BENCH_ROOT"])
PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
QUEUES = PARAMETERS["NumQueues"]
QUEUE_BITS = (QUEUES - 1).bit_length()
LINE_BYTES = 64
ALL_BYTES = (1 << LINE_BYTES) - 1
HEADER_BYTES = 8
NIC_PKG = (ROOT / "spec/generated/sv/nic_pkg.sv").read_text()
RTL_PKG = (ROOT / "nic/rtl/nic_rtl_pkg.sv").read_text()
# Queue, number of the line, its bytes, and those that are written.
Piece = tuple[int, int, bytes, int]
COUNTERS = (
    "tx_writes",
    "tx_write_bytes",
    "quarantined_writes",
    "reordered_writes",
    "split_lines",
    "refused_writes",
    "tx_messages",
    "tx_voids",
    "tx_batches",
    "runts",
    "holes",
    "hole_timeouts",
)


def pack(text: str, name: str, **fields: int) -> int:
    """A packed structure of a package with these fields; the others are 0."""
    found = re.search(r"typedef struct packed \{((?:(?!typedef).)*?)\} " + name + ";", text, re.DOTALL)
    assert found, f"{name} is in its package"
    word, left = 0, dict(fields)
    for high, field_name in re.findall(r"logic\s+(?:\[(\d+):0\])?\s*(\w+);", found[1]):
        width = int(high or 0) + 1
        value = left.pop(field_name, 0)
        assert 0 <= value < 1 << width, f"{field_name} has {width} bits"
        word = word << width | value
    assert not left, f"no fields {list(left)}"
    return word


def named(prefix: str) -> dict[str, int]:
    """Values of an enumeration of nic_pkg by the rest of their names."""
    found = re.findall(prefix + r"(\w+) = \d+'h([0-9a-f]+)", NIC_PKG)
    assert found, f"{prefix} is in nic_pkg"
    return {name: int(value, 16) for name, value in found}


KINDS = named("MessageKind")
CAUSES = {value: name for name, value in named("QueueStatusCause").items()}


def message(frame: bytes, epoch: int, rng: random.Random) -> bytes:
    """A message with this frame, padded to whole lines with anything."""
    header = pack(NIC_PKG, "header_word_t", length_bytes=len(frame), kind=KINDS["Data"], epoch=epoch)
    whole = header.to_bytes(HEADER_BYTES, "little") + frame
    return whole + rng.randbytes(-len(whole) % LINE_BYTES)


def masked(line: bytes, written: int, rng: random.Random) -> int:
    """A line of which only some bytes are right."""
    noise = rng.randbytes(LINE_BYTES)
    return int.from_bytes(bytes(line[i] if written >> i & 1 else noise[i] for i in range(LINE_BYTES)), "little")


@dataclass
class Sender:
    """One queue's writer: lines in any order inside the span, as far as credits reach."""

    queue: int
    window: int
    span: int
    epoch: int = 0
    lines: list[bytes] = field(default_factory=list)
    written: set[int] = field(default_factory=set)
    first_open: int = 0
    freed: int = 0
    expected: deque[bytes] = field(default_factory=deque)
    left: int = 0
    shuffles: bool = True

    def put(self, frame: bytes, rng: random.Random) -> None:
        """A frame to be sent."""
        whole = message(frame, self.epoch, rng)
        self.lines += [whole[i : i + LINE_BYTES] for i in range(0, len(whole), LINE_BYTES)]
        self.expected.append(frame)

    def next(self, rng: random.Random) -> int | None:
        """The number of a line that may be written now, or none."""
        end = min(len(self.lines), self.freed + self.window, self.first_open + (self.span if self.shuffles else 1))
        open_lines = [n for n in range(self.first_open, end) if n not in self.written]
        if not open_lines:
            return None
        at = rng.choice(open_lines) if self.shuffles else open_lines[0]
        self.written.add(at)
        while self.first_open in self.written:
            self.written.discard(self.first_open)
            self.first_open += 1
        return at

    def is_done(self) -> bool:
        """Everything was written, has left, and its lines are free."""
        return self.first_open == len(self.lines) and not self.expected and self.freed == len(self.lines)


class Bench:
    """The pair, with a source of pairs of lines and two wires."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.window = PARAMETERS["WindowLines"]
        self.span = PARAMETERS["SpanLines"]
        self.senders: dict[int, Sender] = {}
        self.failed: list[tuple[int, str]] = []
        self.counters: Counter[str] = Counter()
        self.partial = [b"", b""]
        self.wire_share = [1.0, 1.0]
        self.full_share = 1.0
        self.cycle = 0
        self.taken: list[tuple[int, int]] = []
        self.beats: list[tuple[int, int]] = []
        self.pair: list[Piece | None] = [None, None]
        # Pieces that come next, whoever's turn it is: the rest of a line, or what a test puts here.
        self.next_pieces: deque[Piece] = deque()
        self.split_share = 0.0
        self.is_held = False
        # Whose line is next, of the queues that may have one, and for which place of a pair.
        self.choose: Callable[[list[int], int], int] = lambda queues, _: self.random.choice(queues)

    async def open(self) -> None:
        """Clock, reset, and the sweep after it."""
        dut = self.dut
        for name in ("pair_valid", "start_valid", "stop_valid", "frame_ready", "look_queue", "now_ns"):
            getattr(dut, name + "_i").value = 0
        for name in ("start_queue", "stop_queue", "start_settings", "pair_queue", "pair_line", "pair_data"):
            getattr(dut, name + "_i").value = 0
        for name in ("pair_be", "pair_whole", "pair_first", "pair_last", "shown_valid", "shown_bad", "shown_broken"):
            getattr(dut, name + "_i").value = 0
        dut.window_mask_i.value = self.window - 1
        dut.span_lines_i.value = self.span
        dut.ring_mask_i.value = min(2 * self.span, self.window) - 1
        dut.pool_lines_i.value = PARAMETERS["PoolLines"]
        dut.contexts_i.value = PARAMETERS["NumContexts"]
        dut.max_frame_bytes_i.value = 9216
        dut.failed_ready_i.value = 1
        dut.rst_ni.value = 0
        Clock(dut.clk_i, 4, unit="ns").start()
        await self.cycles(3)
        dut.rst_ni.value = 1
        cocotb.start_soon(self._run())
        await self.settled()

    async def cycles(self, count: int) -> None:
        """Lets clock cycles pass."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    async def settled(self) -> None:
        """Waits until the pair is not busy."""
        for _ in range(4000):
            await RisingEdge(self.dut.clk_i)
            if not int(self.dut.busy_o.value):
                return
        raise AssertionError("the pair stays busy")

    async def held(self) -> None:
        """Nothing more is written until what was written has been judged, as the registers do it for a set-up."""
        self.is_held = True
        for _ in range(2000):
            await self.cycles(1)
            if self.pair == [None, None] and not self.next_pieces and int(self.dut.is_settled_o.value):
                return
        raise AssertionError("the pair does not settle")

    async def start(self, queue: int, epoch: int = 0, **settings: int) -> Sender:
        """Starts a queue, and gives its writer."""
        await self.held()
        self.dut.start_settings_i.value = pack(RTL_PKG, "queue_settings_t", epoch=epoch, weight=1, **settings)
        self.dut.start_queue_i.value = queue
        self.dut.start_valid_i.value = 1
        await self.cycles(1)
        self.dut.start_valid_i.value = 0
        await self.settled()
        self.is_held = False
        self.senders[queue] = Sender(queue, self.window, self.span, epoch)
        return self.senders[queue]

    async def stop(self, queue: int) -> None:
        """Stops a queue; until it has stopped it may go on sending, and what it has not sent is gone."""
        await self.held()
        self.dut.stop_queue_i.value = queue
        self.dut.stop_valid_i.value = 1
        await self.cycles(1)
        self.dut.stop_valid_i.value = 0
        await self.settled()
        self.is_held = False
        del self.senders[queue]

    async def reset(self) -> None:
        """In the middle of whatever is going on."""
        self.dut.rst_ni.value = 0
        await self.cycles(2)
        self.senders.clear()
        self.next_pieces.clear()
        self.pair, self.partial = [None, None], [b"", b""]
        self.dut.rst_ni.value = 1
        await self.settled()

    async def next_start(self, queue: int) -> int:
        """What the register of that name would show."""
        self.dut.look_queue_i.value = queue
        await self.cycles(2)
        # The next question does not change this answer.
        self.dut.look_queue_i.value = queue ^ 1
        value = int(self.dut.look_next_start_o.value)
        await self.cycles(1)
        return value

    async def drained(self, limit: int = 60_000) -> None:
        """Until every queue has sent all and has its lines back."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            is_quiet = self.pair == [None, None] and not self.next_pieces
            if is_quiet and all(sender.is_done() for sender in self.senders.values()):
                await self.idle()
                return
        left = {sender.queue: (len(sender.lines), sender.first_open, sender.freed, len(sender.expected))
                for sender in self.senders.values() if not sender.is_done()}
        raise AssertionError(f"queues do not come to an end (lines, open, freed, frames): {left}")

    async def idle(self) -> None:
        """Until the pair says that nothing is under way."""
        for _ in range(2000):
            await RisingEdge(self.dut.clk_i)
            if int(self.dut.is_idle_o.value):
                assert int(self.dut.is_settled_o.value), "idle is settled"
                return
        raise AssertionError("the pair is not idle")

    async def _run(self) -> None:
        dut = self.dut
        signals = [(name, getattr(dut, f"count_{name}_o")) for name in COUNTERS]
        while True:
            self._offer()
            dut.frame_ready_i.value = sum((self.random.random() < self.wire_share[e]) << e for e in range(2))
            dut.now_ns_i.value = self.cycle * 4
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if not int(dut.rst_ni.value):
                continue
            if self.pair != [None, None] and int(dut.pair_ready_o.value):
                self.taken.append((self.cycle, sum(piece is not None for piece in self.pair)))
                self.pair = [None, None]
            self._frames(int(dut.frame_valid_o.value) & int(dut.frame_ready_i.value))
            if int(dut.freed_valid_o.value):
                self._freed(int(dut.freed_queue_o.value), int(dut.freed_lines_o.value))
            if int(dut.failed_valid_o.value) and int(dut.failed_ready_i.value):
                self.failed.append((int(dut.failed_queue_o.value), CAUSES[int(dut.failed_cause_o.value)]))
            for name, signal in signals:
                if step := int(signal.value):
                    self.counters[name] += step

    def _piece(self, place: int) -> Piece | None:
        """The next piece of whoever is chosen; some lines come in two."""
        if self.next_pieces:
            return self.next_pieces.popleft()
        queues = [] if self.is_held else list(self.senders)
        while queues:
            queue = self.choose(queues, place)
            sender = self.senders[queue]
            at = sender.next(self.random)
            if at is None:
                queues.remove(queue)
                continue
            if self.random.random() >= self.split_share:
                return queue, at, sender.lines[at], ALL_BYTES
            cut = self.random.randrange(1, LINE_BYTES)
            parts = [(1 << cut) - 1, ALL_BYTES & ~((1 << cut) - 1)]
            self.random.shuffle(parts)
            self.next_pieces.append((queue, at, sender.lines[at], parts[1]))
            return queue, at, sender.lines[at], parts[0]
        return None

    def _offer(self) -> None:
        """Two pieces where there are two; either place may stay empty."""
        dut = self.dut
        if self.pair == [None, None]:
            for i in range(2):
                if self.random.random() < self.full_share:
                    self.pair[i] = self._piece(i)
        valid = queues = lines = data = enables = whole = 0
        line_bits = (self.window - 1).bit_length()
        for i, piece in enumerate(self.pair):
            if piece is None:
                continue
            queue, at, line, written = piece
            # Bytes that are not written may be anything.
            kept = int.from_bytes(line, "little") if written == ALL_BYTES else masked(line, written, self.random)
            valid |= 1 << i
            queues |= queue << (i * QUEUE_BITS)
            lines |= at % self.window << (i * line_bits)
            data |= kept << (i * LINE_BYTES * 8)
            enables |= written << (i * LINE_BYTES)
            whole |= (written == ALL_BYTES) << i
        dut.pair_valid_i.value = valid
        dut.pair_queue_i.value = queues
        dut.pair_line_i.value = lines
        dut.pair_data_i.value = data
        dut.pair_be_i.value = enables
        dut.pair_whole_i.value = whole
        dut.pair_first_i.value = 3
        dut.pair_last_i.value = 3

    def _frames(self, taken: int) -> None:
        dut = self.dut
        for e in range(2):
            if not taken >> e & 1:
                continue
            queue = int(dut.frame_queue_o.value) >> (e * QUEUE_BITS) & ((1 << QUEUE_BITS) - 1)
            count = int(dut.frame_bytes_o.value) >> (e * 7) & 127
            data = int(dut.frame_data_o.value) >> (e * 512) & ((1 << 512) - 1)
            last = int(dut.frame_last_o.value) >> e & 1
            self.beats.append((self.cycle, e))
            assert queue % 2 == e, "even queues leave on stream 0, odd ones on stream 1"
            self.partial[e] += data.to_bytes(LINE_BYTES, "little")[:count]
            if last:
                expected = self.senders[queue].expected
                is_next = bool(expected) and expected[0] == self.partial[e]
                assert is_next, f"queue {queue} sends its frames in order, unchanged"
                expected.popleft()
                self.senders[queue].left += 1
                self.partial[e] = b""

    def _freed(self, queue: int, lines: int) -> None:
        sender = self.senders[queue]
        assert sender.freed <= lines <= sender.first_open, f"queue {queue}: {lines} lines free after {sender.freed}"
        sender.freed = lines
