"""Random traffic of all queues against the twin, with lines in pieces, damage and back-pressure."""

from __future__ import annotations

import random
from typing import Any

import cocotb

from kpio.bench import ALL_BYTES, LINES, MAX_FRAME_BYTES, QUEUES, Bench, stuffed
from kpio.twin import Twin

PIECES = 6000


class Sender:
    """The host side of a queue: packets, some of them bad, cut into lines and pieces, within its credits."""

    def __init__(self, queue: int, rng: random.Random, split: float, has_credits: bool, window: int) -> None:
        self.queue = queue
        self.rng = rng
        self.split = split
        self.has_credits = has_credits
        self.window = window
        self.eop = rng.getrandbits(64)
        self.line = 0
        self.lines: list[bytes] = []
        # Pieces of lines that have begun, in the order of their lines: line, bytes, enables left to send.
        self.begun: list[tuple[int, bytes, list[int]]] = []

    def _packet(self) -> list[bytes]:
        rng = self.rng
        longest = min(MAX_FRAME_BYTES, (self.window - 1) * 64) // 8
        sizes = [rng.randint(0, 3), rng.randint(2, 16), rng.randint(2, 7), rng.randint(2, longest), longest]
        words = [rng.getrandbits(64) for _ in range(rng.choice(sizes))]
        if rng.random() < 0.08 and words:
            words[rng.randrange(len(words))] = self.eop
        lines = stuffed(b"".join(word.to_bytes(8, "little") for word in words), self.eop)
        if rng.random() < 0.03:
            lines = [rng.randbytes(64) for _ in range(rng.randint(1, 2 * self.window))] + lines
        return lines

    def next(self, freed: int) -> tuple[int, bytes, int] | None:
        """The next piece: line, bytes, enables; none while the credits do not allow it."""
        if self.begun and (self.rng.random() < 0.5 or len(self.begun) >= 3):
            index = self.rng.randrange(len(self.begun))
            line, data, left = self.begun[index]
            piece = left.pop()
            if not left:
                del self.begun[index]
            return line, data, piece
        # A line of the lap before that is still in pieces must come first: the paper's driver keeps its order.
        is_begun = any((self.line - line) % self.window == 0 for line, _, _ in self.begun)
        if is_begun or (self.has_credits and self.line - freed >= self.window):
            if not self.begun:
                return None
            line, data, left = self.begun[0]
            piece = left.pop()
            if not left:
                del self.begun[0]
            return line, data, piece
        if not self.lines:
            self.lines = self._packet()
        data = self.lines.pop(0)
        line = self.line
        self.line += 1
        if self.rng.random() >= self.split:
            return line, data, ALL_BYTES
        owner = [self.rng.randrange(self.rng.randint(1, 5)) for _ in range(64 if self.rng.random() < 0.3 else 8)]
        step = 64 // len(owner)
        masks = [
            sum(((1 << step) - 1) << step * i for i, name in enumerate(owner) if name == part) for part in set(owner)
        ]
        self.begun.append((line, data, masks[1:]))
        if not masks[1:]:
            self.begun.pop()
        return line, data, masks[0]


async def traffic(dut: Any, split: float, ready: float, gaps: float, has_credits: bool, window: int = LINES) -> None:
    """Random traffic to random queues, then everything compared with the twin."""
    bench = Bench(dut)
    rng = bench.random
    bench.ready_share = ready
    await bench.open(window_lines=window)
    twin = Twin(window, MAX_FRAME_BYTES)
    senders = [Sender(queue, rng, split, has_credits, window) for queue in range(QUEUES)]
    for sender in senders:
        await bench.start(sender.queue, kpio_eop=sender.eop, backpressure=int(not has_credits))
        twin.start(sender.queue, sender.eop)
    favourite = rng.randrange(QUEUES)
    for n in range(PIECES):
        if n % 200 == 0:
            favourite = rng.randrange(QUEUES)
        sender = senders[favourite if rng.random() < 0.5 else rng.randrange(QUEUES)]
        piece = sender.next(bench.freed[sender.queue])
        if piece is None:
            await bench.cycles(1)
            continue
        line, data, enables = piece
        line %= window
        # What is not enabled is not looked at.
        given = bytes(byte if enables >> i & 1 else rng.getrandbits(8) for i, byte in enumerate(data))
        await bench.piece(sender.queue, line, given, enables)
        twin.piece(sender.queue, line, data, enables)
        while rng.random() < gaps:
            await bench.cycles(1)
    bench.ready_share = max(ready, 0.5)
    await bench.quiet(200)
    assert bench.failed == twin.failed == []
    assert bench.frames == twin.order
    counters = bench.taken_counters()
    refused = counters.pop("refused_writes", 0)
    dut._log.info("%d frames, %s", len(bench.frames), dict(counters))
    assert counters == +twin.counters
    assert has_credits <= (refused == 0), "a sender within its credits never waits"
    for queue, state in twin.queues.items():
        assert bench.freed[queue] == state.arrived_lines - len(state.open), f"queue {queue}"
    assert len(twin.order) > 50, "the test is about frames"


@cocotb.test()
async def whole_lines_within_credits(dut: Any) -> None:
    """What the paper assumes."""
    await traffic(dut, split=0.0, ready=1.0, gaps=0.0, has_credits=True)


@cocotb.test()
async def whole_lines_on_back_pressure(dut: Any) -> None:
    """No credits: the queue says when it is full."""
    await traffic(dut, split=0.0, ready=0.4, gaps=0.05, has_credits=False)


@cocotb.test()
async def lines_in_pieces_within_credits(dut: Any) -> None:
    """A slow wire and lines in pieces."""
    await traffic(dut, split=0.5, ready=0.6, gaps=0.2, has_credits=True)


@cocotb.test()
async def lines_in_pieces_on_back_pressure(dut: Any) -> None:
    """Few pieces among whole lines, back to back."""
    await traffic(dut, split=0.1, ready=0.8, gaps=0.0, has_credits=False)


@cocotb.test(skip=LINES < 4)
async def a_strap_makes_windows_smaller(dut: Any) -> None:
    """Windows of a quarter of the lines that there is room for."""
    await traffic(dut, split=0.2, ready=0.7, gaps=0.1, has_credits=True, window=max(LINES // 4, 2))
