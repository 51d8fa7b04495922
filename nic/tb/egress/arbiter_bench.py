"""Drives the arbiter between engines: a source a stream, a wire that may wait, and what must hold of every frame."""

from __future__ import annotations

import os
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
STREAMS = PARAMETERS["Streams"]
QUEUES = PARAMETERS["NumQueues"]
CLASSES = PARAMETERS["NumClasses"]
QUEUE_BITS = max(1, (QUEUES - 1).bit_length())
BEAT_BYTES = 64
MAX_FRAME_BYTES = 9216
# What a stream of weight 1 sends before it gives way: frame_shares.sv.
SHARE_BYTES = 16384


@dataclass
class Frame:
    """A frame, and when things happened to it."""

    queue: int
    data: bytes
    rank: int
    # What stands behind the last byte in the last beat; nobody may look at it.
    padding: bytes
    first_in: int = -1
    last_in: int = -1


@dataclass
class Source:
    """An engine: frames in order, with pauses before and inside them."""

    frames: deque[Frame] = field(default_factory=deque)
    # Share of cycles in which no frame is begun, or no further beat offered, and cycles without any behind a frame.
    pause: float = 0.0
    inner_pause: float = 0.0
    rest: int = 0
    # What is under way.
    frame: Frame | None = None
    at: int = 0
    offers: bool = False
    resting: int = 0
    # Frames that are in, oldest first.
    inside: deque[Frame] = field(default_factory=deque)

    def beat(self) -> tuple[bytes, int]:
        """The beat on offer, and whether it is the last."""
        assert self.frame
        data = self.frame.data[self.at : self.at + BEAT_BYTES]
        return data, int(self.at + BEAT_BYTES >= len(self.frame.data))


class Bench:
    """The arbiter between its sources and a wire."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.sources = [Source() for _ in range(STREAMS)]
        self.ranks = [0] * QUEUES
        self.ready_share = 1.0
        self.sent: list[tuple[int, Frame]] = []
        self.sent_at: list[int] = []
        self.beats_at: list[int] = []
        self.cycle = 0
        self.partial = b""
        self.is_shown = False
        self.last_shown = -10
        self.silent = 0

    async def open(self) -> None:
        """Clock and reset."""
        Clock(self.dut.clk_i, 4, unit="ns").start()
        self.dut.start_valid_i.value = 0
        self.dut.out_ready_i.value = 0
        for name in ("start_queue", "start_class", "start_weight"):
            getattr(self.dut, name + "_i").value = 0
        await self.reset()
        cocotb.start_soon(self._run())

    async def reset(self) -> None:
        """A reset in the middle of whatever is going on; what was inside is gone."""
        self.dut.rst_ni.value = 0
        self.dut.in_valid_i.value = 0
        for _ in range(2):
            await RisingEdge(self.dut.clk_i)
        for source in self.sources:
            source.inside.clear()
            source.frames.clear()
            source.frame, source.offers = None, False
        self.partial, self.is_shown = b"", False
        self.dut.rst_ni.value = 1
        await RisingEdge(self.dut.clk_i)

    async def start(self, queue: int, rank: int, weight: int = 1) -> None:
        """A queue starts with this class and weight."""
        self.dut.start_valid_i.value = 1
        self.dut.start_queue_i.value = queue
        self.dut.start_class_i.value = rank
        self.dut.start_weight_i.value = weight
        await RisingEdge(self.dut.clk_i)
        self.dut.start_valid_i.value = 0
        await RisingEdge(self.dut.clk_i)
        self.ranks[queue] = min(rank, CLASSES - 1)

    def put(self, stream: int, queue: int, size: int) -> None:
        """A frame of random bytes for a source."""
        padding = self.random.randbytes(-size % BEAT_BYTES)
        frame = Frame(queue, self.random.randbytes(size), self.ranks[queue], padding)
        self.sources[stream].frames.append(frame)

    async def cycles(self, count: int) -> None:
        """Lets clock cycles pass."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    async def drained(self, limit: int = 400_000) -> None:
        """Until everything that was put has left, and a little longer."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            if not any(source.frames or source.frame or source.inside for source in self.sources):
                await self.cycles(4)
                assert int(self.dut.is_idle_o.value), "nothing is inside"
                return
        raise AssertionError("frames do not leave")

    async def _run(self) -> None:
        dut = self.dut
        while True:
            self._offer()
            dut.out_ready_i.value = int(self.random.random() < self.ready_share)
            await RisingEdge(dut.clk_i)
            self.cycle += 1
            if not int(dut.rst_ni.value):
                continue
            self._take_in(int(dut.in_ready_o.value))
            self._look()

    def _offer(self) -> None:
        """Puts the next beat of every source at its port; one that is there stays."""
        valid = last = queues = sizes = data = 0
        for i, source in enumerate(self.sources):
            if source.frame is None and source.frames and source.resting == 0:
                if self.random.random() >= source.pause:
                    source.frame, source.at, source.offers = source.frames.popleft(), 0, True
            elif source.frame and not source.offers:
                source.offers = self.random.random() >= source.inner_pause
            source.resting = max(0, source.resting - 1)
            if source.frame and source.offers:
                piece, is_last = source.beat()
                padded = piece + source.frame.padding[: BEAT_BYTES - len(piece)]
                valid |= 1 << i
                last |= is_last << i
                queues |= source.frame.queue << (i * QUEUE_BITS)
                sizes |= len(piece) << (i * 7)
                data |= int.from_bytes(padded, "little") << (i * 512)
        self.dut.in_valid_i.value = valid
        self.dut.in_last_i.value = last
        self.dut.in_queue_i.value = queues
        self.dut.in_bytes_i.value = sizes
        self.dut.in_data_i.value = data

    def _take_in(self, ready: int) -> None:
        for i, source in enumerate(self.sources):
            if not (source.frame and source.offers and ready >> i & 1):
                continue
            frame = source.frame
            if source.at == 0:
                frame.first_in = self.cycle
                source.inside.append(frame)
            source.at += BEAT_BYTES
            source.offers = source.inner_pause == 0
            if source.at >= len(frame.data):
                frame.last_in = self.cycle
                source.frame, source.offers, source.resting = None, False, source.rest

    def _look(self) -> None:
        """What the wire shows in this cycle."""
        dut = self.dut
        if not int(dut.out_valid_o.value):
            waits = [source.inside[0] for source in self.sources if source.inside]
            self.silent = self.silent + 1 if waits else 0
            whole = [frame for frame in waits if 0 <= frame.last_in < self.cycle - 4]
            assert not whole or self.partial or self.silent < 5, "the wire stands still while frames wait"
            return
        self.silent = 0
        stream = int(dut.out_stream_o.value)
        last = int(dut.out_last_o.value)
        frame = self.sources[stream].inside[0]
        if not self.is_shown:
            self.is_shown = True
            if not self.partial:
                self._begins(stream, frame)
            if last:
                self.last_shown = self.cycle
        if not int(dut.out_ready_i.value):
            return
        self.beats_at.append(self.cycle)
        count = int(dut.out_bytes_o.value)
        assert last or count == BEAT_BYTES, "a beat in the middle is full"
        assert int(dut.out_queue_o.value) == frame.queue, "a beat has its frame's queue"
        self.partial += int(dut.out_data_o.value).to_bytes(BEAT_BYTES, "little")[:count]
        self.is_shown = False
        if last:
            assert self.partial == frame.data, f"stream {stream} sends its frames unchanged and in order"
            self.sources[stream].inside.popleft()
            self.sent.append((stream, frame))
            self.sent_at.append(self.cycle)
            self.partial = b""

    def _begins(self, stream: int, frame: Frame) -> None:
        """No frame of a class before it may have been there when this one's turn was decided."""
        # That is when the beat before it moved on to the port, or two cycles before it came there itself.
        behind_another = bool(self.sent_at) and self.sent_at[-1] == self.cycle - 1
        decided = self.last_shown - 1 if behind_another else self.cycle - 2
        for other, source in enumerate(self.sources):
            if other == stream or not source.inside:
                continue
            waiting = source.inside[0]
            assert waiting.first_in > decided - 2 or waiting.rank >= frame.rank, (
                f"cycle {self.cycle}: class {frame.rank} of stream {stream} goes before class {waiting.rank} of "
                f"stream {other}, which waits since {waiting.first_in}"
            )
