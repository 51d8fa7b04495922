"""The MUX against beeline_spec::flow in Python: random headers of every shape, all modes, back-pressure."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

ROOT = Path(os.environ["BENCH_ROOT"])
TCP = 6
VLAN_TAGS = (0x8100, 0x88A8)
OPTIONS = (0, 43, 60)


def modes() -> dict[str, int]:
    """Values of CONTROL.mux, as nic_pkg has them."""
    text = (ROOT / "spec/generated/sv/nic_pkg.sv").read_text()
    return {name: int(value, 16) for name, value in re.findall(r"ControlMux(\w+) = 2'h(\d)", text)}


def be16(data: bytes, at: int) -> int | None:
    """A big-endian number, if it is there."""
    return int.from_bytes(data[at : at + 2], "big") if at + 2 <= len(data) else None


def tcp_destination_port(frame: bytes) -> int | None:
    """Twin of spec/src/flow.rs."""
    at = 12
    kind = be16(frame, at)
    while kind in VLAN_TAGS:
        at += 4
        kind = be16(frame, at)
    ip = frame[at + 2 :]
    if kind == 0x0800:
        fragment = be16(ip, 6)
        if len(ip) < 10 or fragment is None or ip[0] >> 4 != 4 or ip[0] & 15 < 5 or fragment & 0x1FFF or ip[9] != TCP:
            return None
        tcp = 4 * (ip[0] & 15)
    elif kind == 0x86DD:
        if len(ip) < 7 or ip[0] >> 4 != 6:
            return None
        following, tcp = ip[6], 40
        while following in OPTIONS:
            if tcp + 2 > len(ip):
                return None
            following, tcp = ip[tcp], tcp + 8 * (ip[tcp + 1] + 1)
        if following != TCP:
            return None
    else:
        return None
    return be16(ip, tcp + 2)


def random_frame(rng: random.Random) -> bytes:
    """A frame, often with a TCP header somewhere, sometimes cut off."""
    frame = rng.randbytes(12)
    for _ in range(rng.choice([0, 0, 0, 1, 2, 3, 11, 12, 13, 14, 15, 30])):
        frame += rng.choice(VLAN_TAGS).to_bytes(2, "big") + rng.randbytes(2)
    port = rng.choice([80, 99, 100, 150, 200, 201, rng.getrandbits(16)])
    segment = rng.randbytes(2) + port.to_bytes(2, "big") + rng.randbytes(rng.choice([0, 1, 20, 100, 400]))
    protocol = rng.choice([TCP, TCP, TCP, TCP, 17, 44])
    shape = rng.random()
    if shape < 0.4:
        words = rng.choice([5, 5, 5, 6, 15, rng.randrange(16)])
        fragment = rng.choice([0, 0, 0x4000, 0x2000, rng.getrandbits(16)])
        head = bytes([rng.choice([0x40, 0x40, 0x40, 0x60]) | words]) + rng.randbytes(5) + fragment.to_bytes(2, "big")
        head += rng.randbytes(1) + bytes([protocol]) + rng.randbytes(4 * max(words, 3) - 10)
        frame += b"\x08\x00" + head + segment
    elif shape < 0.8:
        options = [rng.choice(OPTIONS) for _ in range(rng.choice([0, 0, 1, 2, 5, 20]))]
        chain = [*options, protocol]
        head = bytes([rng.choice([0x60, 0x60, 0x60, 0x40])]) + rng.randbytes(5) + bytes([chain[0]]) + rng.randbytes(33)
        for following in chain[1:]:
            units = rng.choice([0, 0, 1, 2, 7, 8, 30, 255])
            head += bytes([following, units]) + rng.randbytes(8 * units + 6)
        frame += b"\x86\xdd" + head + segment
    else:
        frame += rng.randbytes(2) + rng.randbytes(rng.randrange(100))
    if rng.random() < 0.3:
        frame = frame[: rng.randint(14, len(frame))]
    return (frame + bytes(max(0, 14 - len(frame))))[:9216]


class Bench:
    """A source of frames in front of the MUX, a sink behind it."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.frames: list[tuple[int, int, bytes]] = []
        self.partial = b""
        self.mismatches = 0
        self.ready_share = 1.0
        self.gaps = 0.0
        self.waited = 0

    async def open(self, mode: int, first: int = 0, last: int = 0) -> None:
        """Clock, reset, registers."""
        dut = self.dut
        dut.rst_ni.value = 0
        for name in ("in_valid", "in_data", "in_bytes", "in_last", "in_queue", "in_kpio", "out_ready"):
            getattr(dut, name + "_i").value = 0
        self.choose(mode, first, last)
        Clock(dut.clk_i, 4, unit="ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        cocotb.start_soon(self._watch())
        await RisingEdge(dut.clk_i)
        await RisingEdge(dut.clk_i)

    def choose(self, mode: int, first: int, last: int) -> None:
        """Writes the registers."""
        self.dut.mux_i.value = mode
        self.dut.first_port_i.value = first
        self.dut.last_port_i.value = last

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            dut.out_ready_i.value = int(self.random.random() < self.ready_share)
            await RisingEdge(dut.clk_i)
            self.mismatches += int(dut.count_mux_mismatches_o.value)
            if int(dut.out_valid_o.value) and int(dut.out_ready_i.value):
                count = int(dut.out_bytes_o.value)
                self.partial += int(dut.out_data_o.value).to_bytes(64, "little")[:count]
                if int(dut.out_last_o.value):
                    self.frames.append((int(dut.out_queue_o.value), int(dut.out_kpio_o.value), self.partial))
                    self.partial = b""

    async def send(self, queue: int, kpio: int, frame: bytes) -> None:
        """Offers a frame, beat by beat."""
        dut = self.dut
        for at in range(0, len(frame), 64):
            beat = frame[at : at + 64]
            last = at + 64 >= len(frame)
            dut.in_valid_i.value = 1
            # Behind the end of a frame stands anything.
            dut.in_data_i.value = int.from_bytes(beat + self.random.randbytes(64 - len(beat)), "little")
            dut.in_bytes_i.value = len(beat)
            dut.in_last_i.value = int(last)
            dut.in_queue_i.value = queue
            dut.in_kpio_i.value = kpio
            for _ in range(5000):
                await RisingEdge(dut.clk_i)
                if int(dut.in_ready_o.value):
                    break
                self.waited += 1
            else:
                raise AssertionError("a beat is not taken")
            dut.in_valid_i.value = 0
            while self.random.random() < self.gaps:
                await RisingEdge(dut.clk_i)

    async def quiet(self) -> None:
        """Until nothing leaves any more."""
        seen = -1
        while seen != len(self.frames) + self.mismatches:
            seen = len(self.frames) + self.mismatches
            for _ in range(1000):
                await RisingEdge(self.dut.clk_i)


def forwards(mode: str, kpio: int, port: int | None, first: int, last: int) -> bool:
    """Twin of nic/model/src/kpio/mux.rs."""
    if mode == "ByPort":
        return (port is not None and first <= port <= last) == bool(kpio)
    return {"Both": True, "Descriptor": not kpio, "Kpio": bool(kpio)}[mode]


async def traffic(dut: Any, mode: str, ready: float, gaps: float, count: int) -> None:
    """Random frames of both paths in one mode."""
    bench = Bench(dut)
    rng = bench.random
    bench.ready_share, bench.gaps = ready, gaps
    first, last = rng.choice([(100, 200), (100, 200), (80, 80), (200, 100), (0, 0xFFFF)])
    await bench.open(modes()[mode], first, last)
    expected = []
    ported = 0
    for n in range(count):
        frame, kpio, queue = random_frame(rng), rng.getrandbits(1), n % 64
        port = tcp_destination_port(frame)
        ported += port is not None
        await bench.send(queue, kpio, frame)
        if forwards(mode, kpio, port, first, last):
            expected.append((queue, kpio, frame))
    await bench.quiet()
    assert bench.frames == expected
    assert bench.mismatches == count - len(expected)
    assert ported > count // 10, "the test is about ports"


@cocotb.test()
async def by_port_as_the_host_has_it(dut: Any) -> None:
    """Every shape of header, back to back."""
    await traffic(dut, "ByPort", 1.0, 0.0, 1500)


@cocotb.test()
async def by_port_with_gaps_and_back_pressure(dut: Any) -> None:
    """The same with gaps between beats and a slow wire."""
    await traffic(dut, "ByPort", 0.5, 0.4, 700)


@cocotb.test()
async def one_path_for_all_traffic(dut: Any) -> None:
    """The modes that read no header."""
    for mode in ("Both", "Descriptor", "Kpio"):
        await traffic(dut, mode, 0.7, 0.1, 150)


@cocotb.test()
async def a_beat_a_cycle_where_no_header_is_read(dut: Any) -> None:
    """And how long frames take where one is."""
    bench = Bench(dut)
    await bench.open(modes()["Both"])
    for n in range(200):
        await bench.send(n % 64, 1, bytes(64))
    assert bench.waited == 0
    await bench.quiet()
    assert len(bench.frames) == 200
    head = bytes(12) + b"\x08\x00\x45" + bytes(8) + bytes([TCP]) + bytes(40)
    bench.choose(modes()["ByPort"], 0, 0xFFFF)
    for n in range(200):
        await bench.send(n % 64, 1, head)
    cycles = (bench.waited + 200) / 200
    dut._log.info("%.2f cycles a frame of one beat by port", cycles)
    assert cycles <= 6.1
    await bench.quiet()
    assert len(bench.frames) == 400
