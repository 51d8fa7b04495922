"""Checksums on the way to the wire: every shape of frame against the twin, at every rate."""

from __future__ import annotations

import os
import random
import struct
from collections import Counter, deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from egress.checksum_frames import Shape, any_shape, frame
from egress.checksum_twin import TCP, UDP, checksum, filled

PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
INSERT = PARAMETERS.get("Insert", 1)
QUEUES = PARAMETERS["NumQueues"]
LONGEST = PARAMETERS["MaxFrameBytes"]
BEAT_BYTES = 64


class Bench:
    """The stage with a source in front and a wire behind."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.waiting: deque[tuple[bytes, int, int]] = deque()
        self.expected: deque[tuple[bytes, int]] = deque()
        self.pause = 0.0
        self.ready_share = 1.0
        self.cycle = 0
        self.in_at: list[int] = []
        self.out_at: list[int] = []
        self.partial = b""
        self.beat: tuple[bytes, int, int, int] | None = None
        self.rest: deque[tuple[bytes, int, int, int]] = deque()
        self.changed = 0
        self.whole = 0

    async def open(self) -> None:
        """Clock and reset."""
        Clock(self.dut.clk_i, 4, unit="ns").start()
        self.dut.in_valid_i.value = 0
        self.dut.out_ready_i.value = 0
        self.dut.rst_ni.value = 0
        for _ in range(3):
            await RisingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        cocotb.start_soon(self._run())
        await RisingEdge(self.dut.clk_i)

    async def reset(self) -> None:
        """In the middle of whatever is going on; what is inside is gone."""
        self.dut.rst_ni.value = 0
        self.waiting.clear()
        await RisingEdge(self.dut.clk_i)
        await RisingEdge(self.dut.clk_i)
        self.expected.clear()
        self.rest.clear()
        self.beat, self.partial, self.whole = None, b"", 0
        self.dut.rst_ni.value = 1
        await RisingEdge(self.dut.clk_i)

    def put(self, data: bytes, asks: int = 1) -> None:
        """A frame to be sent."""
        queue = self.random.randrange(QUEUES)
        after = filled(data) if asks and INSERT else data
        self.changed += after != data
        self.waiting.append((data, queue, asks))
        self.expected.append((after, queue))

    async def drained(self, limit: int = 400_000) -> None:
        """Until everything has left."""
        for _ in range(limit):
            await RisingEdge(self.dut.clk_i)
            if not self.expected:
                await RisingEdge(self.dut.clk_i)
                await RisingEdge(self.dut.clk_i)
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
            if self.beat and int(dut.in_ready_o.value):
                self.in_at.append(self.cycle)
                self.whole += self.beat[1]
                self.beat = None
            if int(dut.out_valid_o.value) and int(dut.out_ready_i.value):
                self._beat()

    def _offer(self) -> None:
        dut = self.dut
        if not self.rest and self.waiting:
            data, queue, asks = self.waiting.popleft()
            for at in range(0, len(data), BEAT_BYTES):
                # Only the first beat says whether it asks.
                says = asks if at == 0 else self.random.randrange(2)
                self.rest.append((data[at : at + BEAT_BYTES], int(at + BEAT_BYTES >= len(data)), queue, says))
        if not self.beat and self.rest and self.random.random() >= self.pause:
            self.beat = self.rest.popleft()
            data, last, queue, asks = self.beat
            # What stands behind the end of a frame must not count.
            padded = data + self.random.randbytes(BEAT_BYTES - len(data))
            dut.in_data_i.value = int.from_bytes(padded, "little")
            dut.in_bytes_i.value = len(data)
            dut.in_last_i.value = last
            dut.in_queue_i.value = queue
            dut.in_asks_i.value = asks
        dut.in_valid_i.value = int(self.beat is not None)

    def _beat(self) -> None:
        dut = self.dut
        self.out_at.append(self.cycle)
        if not self.partial and INSERT:
            assert self.whole > 0, "a frame leaves before its last beat has come"
        count = int(dut.out_bytes_o.value)
        last = int(dut.out_last_o.value)
        assert last or count == BEAT_BYTES, "a beat in the middle is full"
        data, queue = self.expected[0]
        assert int(dut.out_queue_o.value) == queue or not last
        self.partial += int(dut.out_data_o.value).to_bytes(BEAT_BYTES, "little")[:count]
        if last:
            assert self.partial == data, f"\n{self.partial.hex()} is not\n{data.hex()}"
            self.expected.popleft()
            self.partial = b""
            self.whole -= 1


@cocotb.test()
async def every_shape(dut: Any) -> None:
    """Frames with and without sense, asking or not, at three rates."""
    bench = Bench(dut)
    await bench.open()
    for pause, ready in ((0.0, 1.0), (0.4, 1.0), (0.0, 0.5)):
        bench.pause, bench.ready_share = pause, ready
        for _ in range(1200):
            data = frame(bench.random, any_shape(bench.random, LONGEST))[:LONGEST]
            bench.put(data, int(bench.random.random() < 0.9))
        await bench.drained()
    dut._log.info("%d of 3600 frames were changed", bench.changed)
    assert bench.changed > (2000 if INSERT and LONGEST > 200 else -1)


@cocotb.test()
async def every_place(dut: Any) -> None:
    """Each number of tags with each length of header, TCP and UDP, IPv4 and IPv6, each odd and even."""
    bench = Bench(dut)
    await bench.open()
    seen: Counter[str] = Counter()
    for tags in range(3):
        for words in range(5, 16):
            for protocol in (TCP, UDP):
                for size in (20, 21, 63, 64, 150, 151):
                    for version in (4, 6):
                        shape = Shape(tags, version, words, protocol, size, bench.random.choice([0, 5]))
                        data = frame(bench.random, shape)
                        if len(data) <= LONGEST:
                            bench.put(data)
                            seen["v4" if version == 4 else "v6"] += 1
    await bench.drained()
    assert not INSERT or LONGEST < 200 or seen["v4"] == 396


@cocotb.test()
async def frames_cut_short(dut: Any) -> None:
    """A frame that ends inside its headers, at every byte."""
    bench = Bench(dut)
    await bench.open()
    for shape in (Shape(2, 4, 15, TCP, 30), Shape(1, 6, 5, UDP, 30), Shape(0, 4, 5, UDP, 8)):
        data = frame(bench.random, shape)[:LONGEST]
        for size in range(1, len(data) + 1):
            bench.put(data[:size])
    await bench.drained()


@cocotb.test()
async def udp_checksum_of_zero(dut: Any) -> None:
    """Is sent as ffff, since 0 says that there is none; TCP's zero stays."""
    bench = Bench(dut)
    await bench.open()
    for protocol, place, value in ((UDP, 6, 0xFFFF), (TCP, 16, 0)):
        for version, at in ((4, 34), (6, 54)):
            if at + 24 > LONGEST:
                continue
            data = frame(bench.random, Shape(0, version, 5, protocol, 24))
            # The last word makes the sum come out as zero.
            data = data[:-2] + b"\0\0"
            sizes = struct.pack(">II", 24, protocol)
            addresses = data[26:34] if version == 4 else data[22:54]
            body = data[at : at + place] + b"\0\0" + data[at + place + 2 :]
            data = data[:-2] + struct.pack(">H", checksum(addresses + sizes + body))
            assert int.from_bytes(filled(data)[at + place : at + place + 2], "big") == value
            bench.put(data)
    await bench.drained()


@cocotb.test()
async def no_gaps_and_latency(dut: Any) -> None:
    """A beat a cycle for frames of one beat and for the longest ones; latency as the contract says."""
    bench = Bench(dut)
    await bench.open()
    for sizes in ([60] * 400, [min(LONGEST, 65)] * 200, [LONGEST, 64] * 6):
        bench.out_at.clear()
        beats = 0
        for size in sizes:
            payload = max(8, size - 42)
            data = frame(bench.random, Shape(payload=payload))[:size]
            beats += -(-len(data) // BEAT_BYTES)
            bench.put(data)
        await bench.drained()
        assert bench.out_at[-1] - bench.out_at[0] + 1 == beats, f"frames of {sizes[0]} bytes leave with gaps"
    for size in (60, min(LONGEST, 1000)):
        bench.put(frame(bench.random, Shape(payload=size - 42)))
        bench.in_at.clear()
        bench.out_at.clear()
        await bench.drained()
        latency = bench.out_at[0] - bench.in_at[-1]
        dut._log.info("%d bytes: last beat in to first beat out %d cycles", size, latency)
        assert latency == (22 if INSERT else 0) or (not INSERT and size > 64)


@cocotb.test()
async def a_wire_that_stands(dut: Any) -> None:
    """The RAM fills, nothing is lost, and all of it leaves."""
    bench = Bench(dut)
    await bench.open()
    for size in (LONGEST, 60, 400):
        for _ in range(40 if size > 2000 else 150):
            bench.put(frame(bench.random, Shape(payload=max(8, min(size, LONGEST) - 42)))[:LONGEST])
        bench.ready_share = 0.0
        for _ in range(1500):
            await RisingEdge(dut.clk_i)
        assert not INSERT or not int(dut.in_ready_o.value), "it is full"
        bench.ready_share = 1.0
        await bench.drained()


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """Nothing of before is seen after it."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(8):
        for _ in range(60):
            bench.put(frame(bench.random, any_shape(bench.random, LONGEST))[:LONGEST])
        bench.ready_share = 0.5
        for _ in range(bench.random.randrange(20, 150)):
            await RisingEdge(dut.clk_i)
        await bench.reset()
        bench.ready_share = 1.0
        for _ in range(10):
            bench.put(frame(bench.random, any_shape(bench.random, LONGEST))[:LONGEST])
        await bench.drained()
