"""The DMA half alone: reads and writes of every shape against a memory, order, errors, credits, interrupts."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.pcie.core.tlp import CplStatus, Tlp
from cocotbext.pcie.core.utils import PcieId

from usplus.dma_ports import MEMORY_BYTES, WRITTEN_AT, Bench
from usplus.host import COMPLETIONS, LINE_BYTES, PAGE_BYTES, PARAMETERS

# Beats of eight whole lines and their descriptor, for each of the lines.
BEATS_A_LINE = 9 / 8
# Cycles for a line of reads of 512 bytes, at most: 9 beats bring 8 lines, and the first has a latency.
RATE_MARGIN = 1.2


async def traffic(bench: Bench, reads: int, writes: int, pause: float) -> None:
    """Random reads and writes, both ports at once."""
    bench.stall(pause)
    bench.to_read.extend(bench.any_read() for _ in range(reads))
    for _ in range(writes):
        bench.to_write.extend(bench.any_run() if bench.random.random() < 0.1 else [bench.any_write()])
    await bench.settle()
    assert bench.answered + bench.failed >= reads


@cocotb.test()
async def reads_and_writes_of_every_shape(dut: Any) -> None:
    """For each size of read request that a host may allow; completions split and out of order; all streams stall."""
    bench = Bench(dut)
    await bench.open()
    for size in range(6):
        await bench.device.set_readrq(size)
        bench.requests.clear()
        bench.answered = 0
        await traffic(bench, reads=150, writes=150, pause=bench.random.choice([0.0, 0.2, 0.6]))
        longest = max(dwords for kind, _, dwords in bench.requests if kind == "read")
        assert longest * 4 <= 128 << size
        assert longest * 4 > 64 << size or size == 5
    assert bench.link.split > 100 and bench.unknown == 0


@cocotb.test()
async def lines_flow_at_the_streams_rate(dut: Any) -> None:
    """Nothing stalls: a whole line leaves in two beats, and the completion stream is emptied as it comes."""
    bench = Bench(dut)
    await bench.open()
    # Lines of which none goes on where another one ended leave alone, in two beats.
    bench.to_write.extend((WRITTEN_AT + 128 * n, bench.random.randbytes(64)) for n in range(256))
    await bench.cycles(50)
    start = bench.taken_writes
    await bench.cycles(200)
    assert 99 <= bench.taken_writes - start <= 101
    await bench.settle()
    # Lines behind each other share a descriptor, and come as fast as they leave.
    bench.requests.clear()
    bench.to_write.extend((WRITTEN_AT + 64 * n, bench.random.randbytes(64)) for n in range(512))
    await bench.cycles(50)
    start = bench.taken_writes
    await bench.cycles(360)
    lines = bench.taken_writes - start
    dut._log.info("%d lines written in 360 cycles", lines)
    assert lines >= 360 / BEATS_A_LINE - 8
    await bench.settle()
    # The first lines find the way free, and leave alone or by few.
    assert len(bench.requests) <= 512 / 8 + 8
    # As large as completions come: 9 beats for 8 lines.
    bench.link.split_share, bench.link.release_share = 0.0, 1.0
    bench.to_read.extend((512 * n, 512) for n in range(64))
    await bench.settle()
    first, last = bench.beats[0], bench.beats[-1]
    dut._log.info("%d lines in %d cycles", len(bench.beats), last - first + 1)
    assert len(bench.beats) == 512
    assert (last - first) < 512 * RATE_MARGIN


@cocotb.test()
async def writes_that_wait_leave_together(dut: Any) -> None:
    """For each payload that a host may allow: rows of bytes from anywhere to anywhere leave in as few writes as blocks of
    that size have, if they have waited, and none is changed. Whatever finds the way free leaves alone."""
    bench = Bench(dut)
    await bench.open()
    sizes = set()
    for payload in range(3):
        await bench.device.set_mps(payload)
        await bench.cycles(20)
        block = 128 << payload
        for _ in range(60):
            # The stream stands still until all that its queue has room for is there.
            bench.dev.rq_sink.pause = True
            bench.to_write.append((WRITTEN_AT, bench.random.randbytes(1)))
            await bench.cycles(4)
            run = bench.any_run()[:12]
            bench.to_write.extend(run)
            await bench.cycles(40)
            bench.requests.clear()
            bench.dev.rq_sink.pause = False
            await bench.settle()
            first, last = run[0][0], run[-1][0]
            writes = [request for request in bench.requests if request[1] != bench.base + WRITTEN_AT]
            blocks = (bench.base + last) // block - (bench.base + first) // block + 1
            assert len(writes) in (blocks, blocks - (first == WRITTEN_AT)), f"{len(writes)} for {blocks} blocks"
            sizes |= {dwords for _, _, dwords in writes}
    assert {32, 64, 128} <= sizes and len(sizes) > 50
    # One by one.
    bench.requests.clear()
    for n in range(8):
        bench.to_write.append((WRITTEN_AT + 64 * n, bench.random.randbytes(64)))
        await bench.settle()
    assert [dwords for _, _, dwords in bench.requests] == [16] * 8


@cocotb.test()
async def a_read_does_not_part_lines_and_waits_for_few(dut: Any) -> None:
    """Reads and lines behind each other at once: lines leave together all the same, and reads go on."""
    bench = Bench(dut)
    await bench.open()
    bench.to_write.extend((WRITTEN_AT + 64 * n, bench.random.randbytes(64)) for n in range(512))
    bench.to_read.extend((64 * n, 64) for n in range(200))
    await bench.cycles(300)
    reads = [at for at, (kind, *_) in enumerate(bench.requests) if kind == "read"]
    writes = [dwords for kind, _, dwords in bench.requests if kind == "write"]
    assert len(reads) > 20
    assert sum(writes) / len(writes) > 64, "more than half of what a write may carry"
    # Lines that do not go on, but might: a read waits for eight of them.
    await bench.settle()
    bench.requests.clear()
    bench.to_write.extend((WRITTEN_AT + 128 * n, bench.random.randbytes(64)) for n in range(256))
    bench.to_read.extend((64 * n, 64) for n in range(20))
    await bench.settle()
    kinds = "".join(kind[0] for kind, *_ in bench.requests)
    assert kinds.count("r") == 20 and max(len(part) for part in kinds.rsplit("r", 1)[0].split("r")) <= 9


@cocotb.test()
async def a_read_sees_the_writes_in_front_of_it(dut: Any) -> None:
    """What was taken at the write port before a read was offered is in what the read brings."""
    bench = Bench(dut)
    await bench.open()
    bench.stall(0.5)
    for _ in range(200):
        address, data = bench.any_write()
        before = bench.taken_writes
        bench.to_write.append((address, data))
        while bench.taken_writes == before:
            await RisingEdge(dut.user_clk)
        # The mirror holds the write when the read is offered, and nothing else is written until it is answered.
        bench.to_read.append((address // LINE_BYTES * LINE_BYTES, LINE_BYTES))
        await bench.settle()


@cocotb.test()
async def errors_end_a_read_and_hold_up_no_other(dut: Any) -> None:
    """Poisoned and misplaced completions, addresses that nobody has, completions that nobody asked for."""
    bench = Bench(dut)
    await bench.open(read_request=2)
    bench.may_fail = True
    # So that lines of a piece have left when it fails.
    bench.link.split_share = 0.9
    bench.link.poison_share = bench.link.misplace_share = 0.03
    outside = 0
    for _ in range(20):
        bench.to_read.extend(bench.any_read() for _ in range(10))
        # Beyond the memory: the root complex has no answer.
        bench.to_read.append((MEMORY_BYTES + PAGE_BYTES * bench.random.randrange(100), 200))
        outside += 1
        stray = Tlp.create_completion_data_for_tlp(Tlp(), PcieId(0, 0, 0))
        stray.requester_id = bench.dev.functions[0].pcie_id
        stray.tag = bench.random.randrange(PARAMETERS["Tags"], 256)
        stray.byte_count = LINE_BYTES
        stray.set_data(bench.random.randbytes(LINE_BYTES))
        assert stray.fmt_type in COMPLETIONS and stray.status == CplStatus.SC
        await bench.link.deliver(stray)
    await bench.settle()
    assert bench.failed > outside and min(bench.link.poisoned, bench.link.misplaced) > 5
    assert bench.answered > 100
    assert bench.unknown == 20
    # One at a time, so that lines of a read have left when the next of its completions fails it.
    bench.link.poison_share = 0.15
    for n in range(40):
        bench.to_read.append((512 * n, 512))
        await bench.settle()
    # All places have come back: as much as ever goes through.
    bench.link.poison_share = bench.link.misplace_share = 0.0
    bench.may_fail = False
    await traffic(bench, reads=100, writes=0, pause=0.0)


@cocotb.test()
async def reads_wait_for_credits_and_writes_do_not(dut: Any) -> None:
    """While the block has no header credit no read stands in front of writes."""
    bench = Bench(dut)
    await bench.open()
    dut.pcie_tfc_nph_av.value = 0
    bench.to_read.extend((PAGE_BYTES * n, 64) for n in range(4))
    await bench.cycles(20)
    bench.requests.clear()
    bench.to_write.extend(bench.any_write() for _ in range(100))
    await bench.cycles(600)
    assert bench.seen_bytes == bench.taken_bytes and bench.taken_writes == 100
    assert bench.requests and all(kind == "write" for kind, *_ in bench.requests)
    # As many as there are credits, however long the block takes to count them.
    dut.pcie_tfc_nph_av.value = 2
    await bench.cycles(3)
    dut.pcie_tfc_nph_av.value = 0
    await bench.cycles(200)
    assert 1 <= sum(kind == "read" for kind, *_ in bench.requests) <= 2
    dut.pcie_tfc_nph_av.value = 15
    await bench.settle()


@cocotb.test()
async def interrupts_and_fences_come_behind_writes(dut: Any) -> None:
    """At the host's handler, and at the fence, what was written before is there."""
    bench = Bench(dut)
    await bench.open()
    bench.stall(0.6)
    told: deque[tuple[int, int]] = deque()

    def seen(vector: int) -> None:
        at = WRITTEN_AT + 64 * vector
        expected, number = told.popleft()
        assert vector == expected
        assert int.from_bytes(bench.memory[at : at + 8], "little") >= number, f"vector {vector} came too early"

    bench.watch_interrupts(32, seen)
    raised = []
    for n in range(1, 120):
        vector = bench.random.randrange(64)
        address = WRITTEN_AT + 64 * (vector % 32)
        before = bench.taken_writes
        bench.to_write.append((address, n.to_bytes(8, "little")))
        while bench.taken_writes == before:
            await RisingEdge(dut.user_clk)
        told.append((vector % 32, n))
        dut.irq_valid.value = 1
        dut.irq_vector.value = vector
        await RisingEdge(dut.user_clk)
        while not int(dut.irq_ready.value):
            await RisingEdge(dut.user_clk)
        dut.irq_valid.value = 0
        raised.append(vector % 32)
        if bench.random.random() < 0.3:
            dut.fence_ask.value = 1
            await RisingEdge(dut.user_clk)
            while not int(dut.fence_pass.value):
                await RisingEdge(dut.user_clk)
            dut.fence_ask.value = 0
            assert bench.seen_bytes >= bench.taken_bytes
            await RisingEdge(dut.user_clk)
    await bench.settle()
    await bench.cycles(400)
    assert bench.interrupts == raised


@cocotb.test()
async def a_fence_waits_for_the_write_at_the_pins(dut: Any) -> None:
    """A write that is offered and not taken yet counts as one that was made before."""
    bench = Bench(dut)
    await bench.open()
    bench.stall(0.95)
    for _ in range(20):
        bench.to_write.extend(bench.any_run() + [bench.any_write() for _ in range(24)])
        while not int(dut.dmawr_valid.value) or int(dut.dmawr_ready.value):
            await RisingEdge(dut.user_clk)
        dut.fence_ask.value = 1
        before = bench.taken_bytes + bench.offered_bytes
        await RisingEdge(dut.user_clk)
        while not int(dut.fence_pass.value):
            await RisingEdge(dut.user_clk)
        dut.fence_ask.value = 0
        assert bench.seen_bytes >= before
        await bench.settle()


@cocotb.test()
async def a_fence_is_not_let_through_before_a_write_has_begun(dut: Any) -> None:
    """Nothing is under way: the write at the pins has no number yet when the fence is asked for."""
    bench = Bench(dut)
    await bench.open()
    for late in range(40):
        bench.to_write.append(bench.any_write())
        while not int(dut.dmawr_valid.value):
            await RisingEdge(dut.user_clk)
        before = bench.seen_bytes + bench.offered_bytes
        await bench.cycles(late % 4)
        dut.fence_ask.value = 1
        await RisingEdge(dut.user_clk)
        while not int(dut.fence_pass.value):
            await RisingEdge(dut.user_clk)
        dut.fence_ask.value = 0
        assert bench.seen_bytes >= before, f"{late % 4} cycles behind the write"
        await bench.settle()
