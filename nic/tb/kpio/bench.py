"""Drives the kPIO+WC engine and keeps what comes out of it."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb.utils import get_sim_time

ROOT = Path(os.environ["BENCH_ROOT"])
PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
QUEUES = PARAMETERS["NumQueues"]
LINES = 1 << PARAMETERS["LineW"]
MAX_FRAME_BYTES = PARAMETERS["MaxFrameBytes"]
LINE_BYTES = 64
ALL_BYTES = (1 << LINE_BYTES) - 1
CLOCK_NS = 4
COUNTERS = [
    "kpio_lines",
    "kpio_frames",
    "kpio_malformed",
    "runts",
    "bad_lengths",
    "split_lines",
    "holes",
    "hole_timeouts",
    "clobbers",
    "span_exceeded",
    "overruns",
    "refused_writes",
    "quarantined_writes",
]


def pack_settings(**fields: int) -> int:
    """A queue_settings_t of nic_rtl_pkg with these fields; the others are 0."""
    text = (ROOT / "nic/rtl/nic_rtl_pkg.sv").read_text()
    body = re.search(r"typedef struct packed \{(.*?)\} queue_settings_t;", text, re.DOTALL)
    assert body, "queue_settings_t is in nic_rtl_pkg"
    word = 0
    left = dict(fields)
    for high, name in re.findall(r"logic\s+(?:\[(\d+):0\])?\s*(\w+);", body[1]):
        width = int(high or 0) + 1
        value = left.pop(name, 0)
        assert value < 1 << width, f"{name} has {width} bits"
        word = word << width | value
    assert not left, f"no fields {list(left)}"
    return word


def cause_values() -> dict[int, str]:
    """Names of the causes of failures by their values, as nic_pkg has them."""
    text = (ROOT / "spec/generated/sv/nic_pkg.sv").read_text()
    found = re.findall(r"QueueStatusCause(\w+) = 4'h([0-9a-f]+)", text)
    return {int(value, 16): re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name, value in found}


def default_eop() -> int:
    """The default signature, as nic_pkg has it."""
    text = (ROOT / "spec/generated/sv/nic_pkg.sv").read_text()
    found = re.search(r"KpioEopDefault = 64'h([0-9a-f]+)", text)
    assert found, "KpioEopDefault is in nic_pkg"
    return int(found[1], 16)


def vectors() -> list[dict[str, Any]]:
    """The shared cases of this interface."""
    cases = [json.loads(path.read_text()) for path in sorted((ROOT / "spec/vectors/cases").glob("kpio_*.json"))]
    assert len(cases) >= 7, "the shared vectors are there"
    return cases


def stuffed(frame: bytes, eop: int) -> list[bytes]:
    """The lines of a frame as a driver writes them."""
    assert len(frame) % 8 == 0, "the paper's frames are multiples of 8 bytes"
    words = (LINE_BYTES - len(frame) % LINE_BYTES) // 8
    padded = frame + eop.to_bytes(8, "little") * words
    return [padded[i : i + LINE_BYTES] for i in range(0, len(padded), LINE_BYTES)]


class Bench:
    """The engine with a source of pieces in front and a sink of frames behind."""

    def __init__(self, dut: Any, seed: int | None = None) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED if seed is None else seed)
        self.frames: list[tuple[int, bytes]] = []
        self.freed: dict[int, int] = {}
        self.failed: list[tuple[int, str]] = []
        self.counters: Counter[str] = Counter()
        self.cycle = 0
        self.now_ns = 0
        self.taken_at: list[int] = []
        self.frame_at: list[int] = []
        self.ready_share = 1.0
        self.causes = cause_values()

    async def open(self, window_lines: int = LINES) -> None:
        """Clock, reset, and the sweep after it."""
        dut = self.dut
        dut.rst_ni.value = 0
        dut.now_ns_i.value = 0
        dut.window_mask_i.value = window_lines - 1
        for name in ("start_valid", "stop_valid", "piece_valid", "frame_ready", "start_queue", "stop_queue"):
            getattr(dut, name + "_i").value = 0
        for name in ("start_settings", "piece_queue", "piece_line", "piece_data", "piece_be", "piece_whole"):
            getattr(dut, name + "_i").value = 0
        dut.failed_ready_i.value = 1
        Clock(dut.clk_i, CLOCK_NS, unit="ns").start()
        await self.cycles(3)
        dut.rst_ni.value = 1
        cocotb.start_soon(self._watch())
        await self.settled()

    async def reset(self) -> None:
        """A reset in the middle of whatever is going on."""
        self.dut.piece_valid_i.value = 0
        self.dut.rst_ni.value = 0
        await self.cycles(2)
        self.dut.rst_ni.value = 1
        self.frames.clear()
        self.freed.clear()
        self.partial = b""
        await self.cycles(1)
        await self.settled()

    async def cycles(self, count: int) -> None:
        """Lets clock cycles pass."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    def edge(self) -> int:
        """Number of the clock edge that is now."""
        return round(get_sim_time("ns") / CLOCK_NS)

    async def settled(self) -> None:
        """Waits until the engine is not busy."""
        for _ in range(QUEUES + 400):
            await RisingEdge(self.dut.clk_i)
            if not int(self.dut.busy_o.value):
                return
        raise AssertionError("the engine stays busy")

    async def _watch(self) -> None:
        """Samples every output each cycle, and says when frames are taken."""
        dut = self.dut
        self.partial = b""
        names = [(name, getattr(dut, f"count_{name}_o")) for name in COUNTERS]
        while True:
            dut.frame_ready_i.value = int(self.random.random() < self.ready_share)
            dut.now_ns_i.value = self.now_ns
            self.now_ns += CLOCK_NS
            await ReadOnly()
            await RisingEdge(dut.clk_i)
            # Values as they were at the edge: nothing has moved on yet.
            self.cycle += 1
            if not int(dut.rst_ni.value):
                continue
            if int(dut.frame_valid_o.value) and int(dut.frame_ready_i.value):
                self._beat()
            if int(dut.freed_valid_o.value):
                self.freed[int(dut.freed_queue_o.value)] = int(dut.freed_lines_o.value)
            if int(dut.failed_valid_o.value) and int(dut.failed_ready_i.value):
                cause = self.causes[int(dut.failed_cause_o.value)]
                self.failed.append((int(dut.failed_queue_o.value), cause))
            for name, signal in names:
                step = int(signal.value)
                if step:
                    self.counters[name] += step

    def _beat(self) -> None:
        dut = self.dut
        count = int(dut.frame_bytes_o.value)
        data = int(dut.frame_data_o.value).to_bytes(LINE_BYTES, "little")
        last = int(dut.frame_last_o.value)
        assert last or count == LINE_BYTES, "a beat in the middle is full"
        self.partial += data[:count]
        if last:
            self.frames.append((int(dut.frame_queue_o.value), self.partial))
            self.frame_at.append(self.edge())
            self.partial = b""

    async def start(self, queue: int, **settings: int) -> None:
        """Starts a queue, and waits until it is."""
        settings.setdefault("kpio_eop", default_eop())
        self.dut.start_settings_i.value = pack_settings(**settings)
        self.dut.start_queue_i.value = queue
        self.dut.start_valid_i.value = 1
        await self.cycles(1)
        self.dut.start_valid_i.value = 0
        await self.settled()
        self.freed[queue] = 0

    async def stop(self, queue: int) -> None:
        """Stops a queue, and waits until it is."""
        self.dut.stop_queue_i.value = queue
        self.dut.stop_valid_i.value = 1
        await self.cycles(1)
        self.dut.stop_valid_i.value = 0
        await self.settled()

    async def piece(self, queue: int, line: int, data: bytes, enables: int = ALL_BYTES) -> None:
        """Hands in a piece, and waits until it is taken."""
        self.offer(queue, line, data, enables)
        await self.taken()

    def offer(self, queue: int, line: int, data: bytes, enables: int = ALL_BYTES) -> None:
        """Offers a piece, to be followed by `taken`."""
        dut = self.dut
        dut.piece_valid_i.value = 1
        dut.piece_queue_i.value = queue
        dut.piece_line_i.value = line % LINES
        dut.piece_data_i.value = int.from_bytes(data, "little")
        dut.piece_be_i.value = enables
        dut.piece_whole_i.value = int(enables == ALL_BYTES)

    async def taken(self, limit: int = 5000) -> None:
        """Waits until the piece on offer is taken."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            if int(self.dut.piece_ready_o.value):
                self.taken_at.append(self.edge())
                self.dut.piece_valid_i.value = 0
                return
        raise AssertionError("a piece is not taken")

    async def lines(self, queue: int, at: int, lines: Iterable[bytes]) -> int:
        """Hands in whole lines one behind the other from window line `at`; gives the line behind them."""
        for line in lines:
            await self.piece(queue, at, line)
            at += 1
        return at

    async def quiet(self, cycles: int = 60) -> None:
        """Lets the engine finish: until nothing has come out for some cycles."""
        while True:
            seen = (len(self.frames), len(self.partial), sum(self.counters.values()), sum(self.freed.values()))
            await self.cycles(cycles)
            if seen == (len(self.frames), len(self.partial), sum(self.counters.values()), sum(self.freed.values())):
                return

    def taken_counters(self) -> Counter[str]:
        """The counters since the last call."""
        counters, self.counters = self.counters, Counter()
        return counters
