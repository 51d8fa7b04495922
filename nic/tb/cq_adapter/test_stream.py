"""TLPs straight into the completer request stream: every shape, rates, and what is not served."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi.stream import define_stream
from cocotbext.pcie.core.tlp import CplStatus, TlpAttr, TlpTc, TlpType
from cocotbext.pcie.core.utils import PcieId
from cocotbext.pcie.xilinx.us.interface import CcSink
from cocotbext.pcie.xilinx.us.tlp import ReqType, Tlp_us

from cq_adapter.host import (
    BAR_BYTES,
    CLOCK_NS,
    LINE_BYTES,
    PARAMETERS,
    Pg213CqSource,
    Taker,
    cut,
)

# The model's bus has these signals.
AxisBus = define_stream("Axis", signals=["tdata", "tvalid", "tready", "tkeep", "tlast", "tuser"])[0]
MPS = 512


class Bench:
    """A source of TLPs, the adapters, a taker and a sink of completions."""

    def __init__(self, dut: Any, straddle: bool) -> None:
        segments = 2 if straddle else 1
        self.dut = dut
        self.straddle = straddle
        self.source = Pg213CqSource(
            AxisBus.from_prefix(dut, "m_axis_cq"), dut.user_clk, dut.user_reset, segments=segments
        )
        self.sink = CcSink(AxisBus.from_prefix(dut, "s_axis_cc"), dut.user_clk, dut.user_reset, segments=segments)
        self.taker = Taker(dut)
        self.random = self.taker.random
        self.credits = 0
        # TLPs under way, as a PCIe block would hold them.
        self.mirror = bytearray(BAR_BYTES)
        self.expected: list[tuple[int, bool, bool]] = []

    async def open(self) -> None:
        """Clock and reset."""
        self.dut.user_reset.value = 1
        Clock(self.dut.user_clk, CLOCK_NS, unit="ns").start()
        await self.cycles(4)
        self.dut.user_reset.value = 0
        cocotb.start_soon(self._credits())
        await self.cycles(4)

    async def cycles(self, count: int) -> None:
        """Lets clock cycles pass."""
        for _ in range(count):
            await RisingEdge(self.dut.user_clk)

    async def _credits(self) -> None:
        while True:
            await RisingEdge(self.dut.user_clk)
            self.credits += int(self.dut.pcie_cq_np_req.value)

    async def write(self, address: int, data: bytes, first_be: int = 15, last_be: int = 15, **fields: int) -> None:
        """Sends a memory write of whole DWs; what it must do goes to the mirror."""
        tlp = self.request(TlpType.MEM_WRITE, address, len(data) // 4, first_be, last_be)
        tlp.set_data(data)
        tlp.bar_id = fields.get("bar_id", 0)
        tlp.discontinue = bool(fields.get("discontinue", 0))
        if not tlp.bar_id and not tlp.discontinue:
            enables = enables_of(len(data), tlp.first_be, tlp.last_be)
            for i, byte in enumerate(data):
                if enables >> i & 1:
                    self.mirror[address + i] = byte
        if not tlp.bar_id:
            lines = cut(address, len(data))
            self.expected += [
                (line, index == 0, index == len(lines) - 1) for index, (line, _, _) in enumerate(lines)
            ]
        await self.source.send(tlp.pack_us_cq())

    def request(self, kind: TlpType, address: int, dwords: int, first_be: int, last_be: int) -> Tlp_us:
        """A request with random fields that a completion must bring back."""
        tlp = Tlp_us()
        tlp.fmt_type = kind
        tlp.address = address | self.random.getrandbits(10) << 32
        tlp.length = dwords
        tlp.first_be = first_be
        tlp.last_be = last_be if dwords > 1 else 0
        tlp.requester_id = PcieId(self.random.getrandbits(8), self.random.getrandbits(5), self.random.getrandbits(3))
        tlp.tag = self.random.getrandbits(8)
        tlp.tc = TlpTc(self.random.getrandbits(3))
        tlp.attr = TlpAttr(self.random.getrandbits(3))
        tlp.bar_aperture = PARAMETERS["AddressW"]
        return tlp

    async def ask(self, tlp: Tlp_us) -> None:
        """Sends a request that wants an answer, as soon as there is a credit."""
        while not self.credits:
            await RisingEdge(self.dut.user_clk)
        self.credits -= 1
        await self.source.send(tlp.pack_us_cq())

    async def answer(self, tlp: Tlp_us) -> Tlp_us:
        """The next completion, checked against the request."""
        got = Tlp_us.unpack_us_cc(await self.sink.recv())
        assert (got.requester_id, got.tag, got.tc, got.attr) == (tlp.requester_id, tlp.tag, tlp.tc, tlp.attr)
        return got

    async def quiet(self) -> None:
        """Until everything has been taken."""
        for _ in range(20000):
            await RisingEdge(self.dut.user_clk)
            if self.source.empty() and len(self.taker.pieces) >= len(self.expected):
                break
        await self.cycles(30)
        assert self.source.empty()

    def check(self) -> None:
        """Lines as expected, memory as the mirror."""
        assert [(piece.address, piece.first, piece.last) for piece in self.taker.pieces] == self.expected
        assert self.taker.memory == self.mirror
        self.expected.clear()
        self.taker.pieces.clear()


def enables_of(count: int, first_be: int, last_be: int) -> int:
    """Byte enables of a write of `count` bytes, as a mask."""
    if count == 4:
        return first_be
    return first_be | (1 << count - 4) - 16 | last_be << count - 4


async def random_writes(dut: Any, straddle: bool, ready: float, count: int) -> None:
    """Writes of any size, place and byte enables."""
    bench = Bench(dut, straddle)
    bench.taker.ready_share = ready
    await bench.open()
    rng = bench.random
    for _ in range(count):
        sizes = [1, 1, 2, 3, 4, 5, 8, 12, 13, 16, 16, 16, 17, 28, 32, 64, MPS // 4, rng.randint(1, MPS // 4)]
        dwords = rng.choice(sizes)
        address = rng.randrange(BAR_BYTES // 4 - dwords) * 4
        if rng.random() < 0.4:
            address -= address % LINE_BYTES
        # Any pattern in one or two DWs; longer writes are without holes.
        if dwords <= 2:
            first, last = rng.getrandbits(4), rng.getrandbits(4)
        else:
            first, last = rng.choice([15, 14, 12, 8]), rng.choice([15, 7, 3, 1])
        await bench.write(address, rng.randbytes(4 * dwords), first, last)
        if rng.random() < 0.05:
            await bench.cycles(rng.randrange(20))
    await bench.quiet()
    bench.check()
    assert bench.taker.bad == 0


for _straddle in (True, False):
    for _ready in (1.0, 0.5):

        async def _test(dut: Any, straddle: bool = _straddle, ready: float = _ready) -> None:
            await random_writes(dut, straddle, ready, 1500)

        _test.__name__ = _test.__qualname__ = f"random_writes_straddle_{int(_straddle)}_ready_{int(_ready * 100)}"
        globals()[_test.__name__] = cocotb.test()(_test)


@cocotb.test()
async def every_alignment_and_pair_of_sizes(dut: Any) -> None:
    """Two writes back to back, every place in a line by every size, so that they share beats in every way."""
    bench = Bench(dut, straddle=True)
    await bench.open()
    rng = bench.random
    for at in range(16):
        for dwords in range(1, 34):
            base = rng.randrange(BAR_BYTES // 64 - 8) * 64
            await bench.write(base + 4 * at, rng.randbytes(4 * dwords))
            if rng.random() < 0.5:
                await bench.write(base + 4 * rng.randrange(16), rng.randbytes(4 * rng.randint(1, 5)))
    await bench.quiet()
    bench.check()


async def rate(dut: Any, straddle: bool, dwords: int, aligned: bool, count: int = 400) -> tuple[float, int]:
    """Beats a write, and stalled cycles, of writes back to back."""
    bench = Bench(dut, straddle)
    bench.source.queue_occupancy_limit_frames = -1
    await bench.open()
    rng = bench.random
    bench.source.pause = True
    for n in range(count):
        offset = 0 if aligned else 4 * rng.randrange(16)
        await bench.write(n * 1024 % (BAR_BYTES // 2) + offset, rng.randbytes(4 * dwords))
    bench.source.pause = False
    await bench.quiet()
    bench.check()
    beats = bench.taker.beats - bench.taker.stalls
    dut._log.info(
        "straddle %d, %d B, aligned %d: %.2f beats a write, %d cycles stalled of %d",
        straddle, 4 * dwords, aligned, beats / count, bench.taker.stalls, bench.taker.beats,
    )
    return beats / count, bench.taker.stalls


@cocotb.test()
async def a_line_costs_one_and_a_half_beats_with_straddle(dut: Any) -> None:
    """64-byte writes to lines, without a stall."""
    beats, stalls = await rate(dut, True, 16, aligned=True)
    assert beats <= 1.51 and stalls == 0


@cocotb.test()
async def a_line_costs_two_beats_without(dut: Any) -> None:
    """Without straddle."""
    beats, stalls = await rate(dut, False, 16, aligned=True)
    assert beats == 2 and stalls == 0


@cocotb.test()
async def long_writes_do_not_stall(dut: Any) -> None:
    """512 bytes, 8 lines in 8.5 beats."""
    beats, stalls = await rate(dut, True, 128, aligned=True)
    assert beats <= 8.51 and stalls == 0


@cocotb.test()
async def unaligned_writes_stall_no_more_than_lines_need(dut: Any) -> None:
    """A write that crosses a line makes two lines; the input waits for the output, or for its own conflicts."""
    beats, stalls = await rate(dut, True, 16, aligned=False)
    assert stalls <= 400 * (2.1 - beats)


@cocotb.test()
async def reads_bring_what_pcie_asks_for(dut: Any) -> None:
    """Every length up to a line, every byte enable, every alignment."""
    bench = Bench(dut, straddle=True)
    bench.taker.memory[:] = bench.random.randbytes(BAR_BYTES)
    bench.taker.register_share = 0.7
    await bench.open()
    rng = bench.random
    for n in range(500):
        dwords = rng.choice([1, 1, 2, 2, rng.randint(1, 16), 16, 13, 14])
        address = rng.randrange(BAR_BYTES // 4 - 16) * 4
        first = rng.choice([15, 14, 12, 8]) if dwords > 2 else rng.randrange(dwords - 1, 16)
        last = rng.randrange(1, 16) if dwords == 2 else rng.choice([15, 7, 3, 1])
        tlp = bench.request(TlpType.MEM_READ, address, dwords, first, last)
        bench.taker.reads.clear()
        # In the upper half of a beat every other time.
        if n % 2:
            await bench.write(0, bench.taker.memory[:4])
        await bench.ask(tlp)
        got = await bench.answer(tlp)
        assert got.status == CplStatus.SC and got.length == dwords
        assert got.byte_count == tlp.get_be_byte_count()
        # A read of no bytes begins at its DW; the model says otherwise.
        offset = tlp.get_first_be_offset() if first else 0
        assert got.lower_address == (address + offset) & 0x7F
        words = list(range(address // 8 * 8, address + 4 * dwords, 8))
        if tlp.first_be:
            assert bytes(got.data) == bench.taker.memory[address : address + 4 * dwords]
            assert bench.taker.reads == words
        else:
            assert (bytes(got.data), bench.taker.reads) == (bytes(4), [])
    assert bench.taker.bad == 0


@cocotb.test()
async def a_read_comes_after_the_writes_in_front_of_it(dut: Any) -> None:
    """The answer holds what was written just before, however slowly writes are taken; writes behind do not wait."""
    bench = Bench(dut, straddle=True)
    bench.taker.ready_share = 0.2
    await bench.open()
    rng = bench.random
    asked: list[tuple[Tlp_us, bytes]] = []
    for _ in range(300):
        at = rng.randrange(64) * 8
        for _ in range(rng.randint(1, 3)):
            size = rng.choice([8, 64, 200])
            await bench.write(rng.randrange(64) * 8, rng.randbytes(size))
        tlp = bench.request(TlpType.MEM_READ, at, 2, 15, 15)
        asked.append((tlp, bytes(bench.mirror[at : at + 8])))
        await bench.ask(tlp)
        # One at a time at the registers: a later write may come in front of a read, never an earlier one behind it.
        if rng.random() < 0.5:
            while asked:
                tlp, expected = asked.pop(0)
                got = await bench.answer(tlp)
                if not asked:
                    assert bytes(got.data) == expected
    for tlp, _ in asked:
        await bench.answer(tlp)
    await bench.quiet()
    bench.check()


@cocotb.test()
async def writes_pass_a_read_that_waits(dut: Any) -> None:
    """Registers that do not answer hold up reads alone."""
    bench = Bench(dut, straddle=True)
    bench.taker.register_share = 0.0
    await bench.open()
    rng = bench.random
    reads = [bench.request(TlpType.MEM_READ, 8 * n, 2, 15, 15) for n in range(PARAMETERS["ReadDepth"] + 1)]
    for tlp in reads[:-1]:
        await bench.ask(tlp)
    for n in range(300):
        await bench.write(64 * n, rng.randbytes(64))
    await bench.quiet()
    bench.check()
    # One has left for the answering side and gives its credit back; no more than that.
    assert bench.credits == 1
    bench.taker.register_share = 1.0
    for tlp in reads[:-1]:
        await bench.answer(tlp)
    assert bench.credits == PARAMETERS["ReadDepth"]


@cocotb.test()
async def what_is_not_served_is_answered_and_counted(dut: Any) -> None:
    """Other BARs, I/O, atomics, locked reads, reads of more than a line, messages: counted, nothing changed."""
    bench = Bench(dut, straddle=True)
    await bench.open()
    rng = bench.random
    bad = 0
    for n in range(400):
        await bench.write(64 * n, rng.randbytes(4 * rng.randint(1, 20)))
        kind = rng.choice(["bar", "read_bar", "io_read", "io_write", "atomic", "locked", "long", "message"])
        bad += 1
        if kind == "bar":
            await bench.write(64 * n, rng.randbytes(64), bar_id=2)
            continue
        if kind == "message":
            tlp = bench.request(TlpType.MEM_WRITE, 64, 2, 15, 15)
            tlp.set_data(rng.randbytes(8))
            frame = tlp.pack_us_cq()
            frame.data[2] = frame.data[2] & ~(0xF << 11) | rng.choice([ReqType.MSG, ReqType.MSG_VENDOR]) << 11
            await bench.source.send(frame)
            continue
        types = {
            "read_bar": TlpType.MEM_READ,
            "io_read": TlpType.IO_READ,
            "io_write": TlpType.IO_WRITE,
            "atomic": rng.choice([TlpType.FETCH_ADD, TlpType.SWAP, TlpType.CAS]),
            "locked": TlpType.MEM_READ_LOCKED,
            "long": TlpType.MEM_READ,
        }
        dwords = {"io_read": 1, "io_write": 1, "atomic": rng.choice([2, 4, 8]), "long": rng.choice([17, 64, 1024])}
        tlp = bench.request(types[kind], 64 * n, dwords.get(kind, 2), 15, 15)
        tlp.bar_id = 1 if kind == "read_bar" else 0
        if kind in ("io_write", "atomic"):
            tlp.set_data(rng.randbytes(4 * tlp.length))
        await bench.ask(tlp)
        got = await bench.answer(tlp)
        assert got.status == (CplStatus.CA if kind == "long" else CplStatus.UR), kind
        assert not got.data
        locked = got.fmt_type in (TlpType.CPL_LOCKED, TlpType.CPL_LOCKED_DATA)
        assert locked == (kind == "locked")
    await bench.quiet()
    bench.check()
    assert not bench.taker.reads
    assert bench.taker.bad == bad


@cocotb.test()
async def a_discontinued_write_changes_nothing_in_its_last_lines(dut: Any) -> None:
    """What the block takes back in the beat with a TLP's end is not written; TLPs stay whole."""
    bench = Bench(dut, straddle=False)
    await bench.open()
    rng = bench.random
    discontinued = 0
    for n in range(200):
        # The line is whole in its last beat, so nothing of it is out when the block takes it back.
        gone = rng.random() < 0.3
        discontinued += gone
        await bench.write(64 * n, rng.randbytes(4 * rng.randint(1, 16)), discontinue=int(gone))
    await bench.quiet()
    bench.check()
    assert discontinued > 20 and bench.taker.bad == discontinued


@cocotb.test()
async def a_reset_in_the_middle_leaves_nothing(dut: Any) -> None:
    """Whatever was under way, afterwards the adapters work as new."""
    bench = Bench(dut, straddle=True)
    await bench.open()
    rng = bench.random
    for _ in range(30):
        for n in range(rng.randint(1, 30)):
            await bench.write(64 * n, rng.randbytes(4 * rng.randint(1, 100)))
        bench.dut.user_reset.value = 1
        # The model offers nothing in reset, but goes on with the TLP that it is in the middle of afterwards: the
        # adapter, which has forgotten its beginning, must pass the rest over.
        bench.source.clear()
        await bench.cycles(3)
        bench.credits = 0
        bench.dut.user_reset.value = 0
        await bench.cycles(100)
        bench.taker.pieces.clear()
        bench.expected.clear()
        bench.mirror[:] = bench.taker.memory
        await bench.write(64 * rng.randrange(1000), rng.randbytes(4 * rng.randint(1, 100)))
        tlp = bench.request(TlpType.MEM_READ, 0, 2, 15, 15)
        await bench.ask(tlp)
        assert bytes((await bench.answer(tlp)).data) == bench.mirror[:8]
        await bench.quiet()
        bench.check()
