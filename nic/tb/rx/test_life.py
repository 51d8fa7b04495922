"""Stop, start and reset in the middle of traffic; cycles a frame."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import Habits

from rx.bench import DESCRIPTORS, QUEUE_BYTES, RING, Bench
from seeds import seeds


@cocotb.test()
async def a_stop_ends_everything_of_its_queue(dut: SimHandleBase) -> None:
    for seed in seeds(10):
        bench = Bench(dut, 500 + seed, Habits(latency=(1, 120)), lossless=seed % 2 == 0)
        await bench.begin()
        for life in range(6):
            mode = bench.rng.choice([RING, DESCRIPTORS])
            victim = await bench.start(0, mode, 64)
            if bench.count > 1 and 1 not in bench.queues:
                await bench.start(1, RING, 64)
            for _ in range(20):
                # Nobody frees for now, so a lossless port holds a frame when the stop comes.
                bench.to_send.append(bench.rng.randbytes(bench.rng.randrange(1, 1500)))
            await bench.cycles(bench.rng.randrange(300))
            await bench.stop(0)
            requests, writes = len(bench.reads.requests), len(bench.writes.log)
            low, high = victim.at, victim.at + QUEUE_BYTES
            assert not any(low <= read.address < high for read in bench.reads.waiting)
            interrupts = bench.interrupts.count(0)
            await bench.ring(0, 1)
            for _ in range(8):
                await bench.cycles(50)
                if 1 in bench.queues:
                    while bench.queues[1].poll() is not None:
                        pass
                    await bench.ring(1, bench.queues[1].next)
            assert not any(low <= address < high for address, _, _ in bench.reads.requests[requests:])
            assert not any(low <= address < high for address, _ in bench.writes.log[writes:]), f"life {life}"
            assert bench.interrupts.count(0) <= interrupts + 1
        assert not bench.failed and bench.counters["bad_accesses"] <= 1


@cocotb.test()
async def a_new_life_begins_at_zero(dut: SimHandleBase) -> None:
    bench = Bench(dut, 520)
    await bench.begin()
    for life in range(8):
        mode = RING if life % 2 else DESCRIPTORS
        queue = await bench.start(0, mode, 32)
        for _ in range(20):
            bench.send(bench.rng.randbytes(bench.rng.randrange(1, 500)))
        await bench.settle()
        assert queue.received == 20
        await bench.stop(0)
    assert bench.counters["rx_frames"] == 160 and bench.counters["bad_accesses"] == 0


@cocotb.test()
async def reset_in_the_middle_of_traffic_leaves_nothing_behind(dut: SimHandleBase) -> None:
    bench = Bench(dut, 530, Habits(latency=(1, 100)))
    await bench.begin()
    for turn in range(12):
        await bench.start(0, RING if turn % 2 else DESCRIPTORS, 64)
        if bench.count > 1:
            await bench.start(1, DESCRIPTORS, 32)
        for _ in range(20):
            bench.to_send.append(bench.rng.randbytes(bench.rng.randrange(1, 1500)))
        await bench.cycles(bench.rng.randrange(10, 400))
        bench.to_send.clear()
        await bench.reset()
        bench.queues.clear()
        requests, writes = len(bench.reads.requests), len(bench.writes.log)
        await bench.cycles(200)
        assert len(bench.reads.requests) == requests and len(bench.writes.log) == writes
    queue = await bench.start(0, RING, 64)
    bench.send(bytes(1000))
    await bench.settle()
    assert queue.received == 1


@cocotb.test()
async def the_rate_is_what_the_header_says(dut: SimHandleBase) -> None:
    cases = [(RING, 56, 1, 300, 10.5), (RING, 1514, 1, 100, 26.0), (DESCRIPTORS, 64, 1, 300, 11.0)]
    if dut.HashLanes.value == 4:
        cases.append((RING, 56, 4, 300, 11.0))
    for mode, length, count, frames, limit in cases:
        if count > 1 << len(dut.start_queue_i):
            continue
        bench = Bench(dut, 540, Habits(latency=(20, 20), request_ready=1.0, write_ready=1.0, answer=1.0))
        bench.wire_valid = 1.0
        await bench.begin()
        for number in range(count):
            await bench.start(number, mode, 4096 if mode == RING else 128, buffer_bytes=length)
        for _ in range(frames):
            bench.send(bytes([8]) * 12 + b"\x08\x00\x45" + bench.rng.randbytes(length - 15))
        began = bench.cycle
        while bench.counters["rx_frames"] < frames:
            await bench.cycles(1)
            if mode == DESCRIPTORS:
                bench.check_frames()
                await bench.ring(0, bench.queues[0].next)
        cycles = (bench.cycle - began - 100) / frames
        kind = "ring" if mode == RING else "descriptors"
        dut._log.info("%s, %d bytes, %d queues: %.2f cycles a frame", kind, length, count, cycles)
        assert cycles <= limit, f"{cycles:.2f} cycles a frame"


@cocotb.test()
async def an_idle_engine_writes_in_the_cycles_of_its_header(dut: SimHandleBase) -> None:
    bench = Bench(dut, 541, Habits(write_ready=1.0))
    await bench.begin()
    await bench.start(0, RING, 64)
    bench.send(bytes(56))
    last = first = 0
    while not first:
        await bench.cycles(1)
        if int(dut.frame_valid_i.value) and int(dut.frame_ready_o.value):
            last = bench.cycle
        if int(dut.dmawr_valid_o.value):
            first = bench.cycle
    dut._log.info("last beat to first write: %d cycles", first - last)
    assert first - last <= 18
