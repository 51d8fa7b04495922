"""No room, frames too long, counts, settings and descriptors that make no sense."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import Habits

from rx.bench import (
    BASE,
    CAUSE_BAD_LENGTH,
    CAUSE_DMA_ERROR,
    COMPLETIONS_AT,
    DESCRIPTORS,
    MAX_FRAME,
    OFF,
    RING,
    Bench,
)


@cocotb.test()
async def without_room_a_frame_is_held_or_dropped_as_the_port_is_made(dut: SimHandleBase) -> None:
    for mode in (RING, DESCRIPTORS):
        for lossless in (True, False):
            bench = Bench(dut, 400, lossless=lossless)
            await bench.begin()
            bench.to_send.append(bytes(64))
            await bench.cycles(60)
            assert bench.counters["rx_no_space"] == 1, "nobody receives"
            queue = await bench.start(0, mode, 2 if mode == RING else 1)
            for value in range(1, 9):
                bench.send(bytes([value]) * 64)
            await bench.cycles(600)
            assert bench.counters["rx_frames"] == 1
            assert bench.counters["rx_no_space"] == (1 if lossless else 8)
            if lossless:
                await bench.settle()
                assert queue.received == 8
            else:
                queue.expected = type(queue.expected)([queue.expected[0]])
                bench.check_frames()


@cocotb.test()
async def frames_too_long_for_port_or_ring_are_dropped(dut: SimHandleBase) -> None:
    bench = Bench(dut, 401)
    await bench.begin()
    queue = await bench.start(0, RING, 2)
    bench.to_send.append(bytes(121))
    bench.to_send.append(bytes(MAX_FRAME + 1))
    bench.to_send.append(bytes(3 * MAX_FRAME))
    bench.to_send.append(bytes(MAX_FRAME))
    bench.send(b"\x01" * 120)
    await bench.settle()
    assert bench.counters["rx_oversize"] == 4 and queue.received == 1
    await bench.stop(0)
    queue = await bench.start(0, RING, 256)
    for _ in range(9):
        bench.to_send.append(bytes(MAX_FRAME + 64))
        bench.send(bench.rng.randbytes(MAX_FRAME))
    await bench.settle()
    assert queue.received == 9


@cocotb.test()
async def a_freed_count_that_cannot_be_is_counted_and_ignored(dut: SimHandleBase) -> None:
    bench = Bench(dut, 402)
    await bench.begin()
    queue = await bench.start(0, RING, 4)
    bench.send(bytes(100))
    bench.send(bytes(100))
    bench.send(b"\x01" * 100)
    await bench.cycles(200)
    for count in (5, 1 << 32, (1 << 64) - 1, 1 << 23):
        await bench.ring(0, count)
        await bench.cycles(20)
    assert bench.counters["bad_accesses"] == 4 and bench.counters["rx_frames"] == 2
    bench.check_frames()
    await bench.ring(0, 2)
    await bench.cycles(20)
    await bench.ring(0, 1)
    await bench.cycles(100)
    assert bench.counters["bad_accesses"] == 5 and bench.counters["rx_frames"] == 3
    await bench.settle()
    assert queue.received == 3


@cocotb.test()
async def a_lent_count_that_cannot_be_is_counted_and_ignored(dut: SimHandleBase) -> None:
    bench = Bench(dut, 403)
    await bench.begin()
    queue = await bench.start(0, DESCRIPTORS, 4)
    for value in range(1, 8):
        bench.send(bytes([value]) * 100)
    await bench.cycles(400)
    assert bench.counters["rx_frames"] == 4
    for count in (5, 1 << 17, 1 << 23, (1 << 64) - 1):
        await bench.ring(0, count)
        await bench.cycles(20)
    assert bench.counters["bad_accesses"] == 4
    await bench.settle()
    assert queue.received == 7 and bench.counters["rx_frames"] == 7


@cocotb.test()
async def rings_that_make_no_sense_do_not_start(dut: SimHandleBase) -> None:
    bench = Bench(dut, 404)
    await bench.begin()
    top = 1 << 64
    wrong: list[tuple[int, int, dict[str, int], int]] = [
        (RING, 0, {}, CAUSE_BAD_LENGTH),
        (RING, 3, {}, CAUSE_BAD_LENGTH),
        (RING, 1 << 23, {}, CAUSE_BAD_LENGTH),
        (RING, 4, {"rx_ring_address": BASE + 8}, CAUSE_DMA_ERROR),
        (RING, 4, {"rx_ring_address": top - 256}, CAUSE_DMA_ERROR),
        (DESCRIPTORS, 5, {}, CAUSE_BAD_LENGTH),
        (DESCRIPTORS, 1 << 17, {}, CAUSE_BAD_LENGTH),
        (DESCRIPTORS, 4, {"rx_ring_address": BASE + 8}, CAUSE_BAD_LENGTH),
        (DESCRIPTORS, 4, {"rx_completion_address": BASE + 4}, CAUSE_DMA_ERROR),
        (DESCRIPTORS, 4, {"rx_completion_address": top - 32}, CAUSE_DMA_ERROR),
        (RING, 4, {"rx_mode": 3}, CAUSE_BAD_LENGTH),
    ]
    for mode, entries, more, _ in wrong:
        await bench.start(0, mode, entries, **({"rx_ring_address": BASE} | more))
        await bench.cycles(40)
    assert bench.failed == [(0, cause) for _, _, _, cause in wrong], bench.failed
    assert bench.counters["bad_lengths"] == sum(cause == CAUSE_BAD_LENGTH for *_, cause in wrong)
    await bench.start(0, RING, 4, rx_mode=OFF)
    bench.to_send.append(bytes(64))
    await bench.cycles(60)
    assert bench.counters["rx_no_space"] == 1 and not bench.writes.log and not bench.reads.requests
    queue = await bench.start(0, RING, 1)
    bench.send(bytes(56))
    await bench.settle()
    assert queue.received == 1 and len(bench.failed) == len(wrong)


@cocotb.test()
async def useless_buffers_come_back_empty_and_short_ones_wait(dut: SimHandleBase) -> None:
    bench = Bench(dut, 405, lossless=True)
    await bench.begin()
    queue = await bench.start(0, DESCRIPTORS, 8)
    await bench.stop(0)
    queue.clear()
    fine = queue.buffer(5)
    queue.lend(0, fine, 0)
    queue.lend(1, (1 << 64) - 10, 2048)
    queue.lend(2, fine, 100)
    bench.dut.start_valid_i.value = 1
    await bench.cycles(1)
    bench.dut.start_valid_i.value = 0
    await bench.idle()
    bench.writes.log.clear()
    bench.to_send.append(bytes(101))
    await bench.cycles(300)
    assert (bench.counters["rx_oversize"], bench.counters["bad_lengths"]) == (1, 2)
    assert bench.counters["completions"] == 2
    bench.send(b"\x02" * 100)
    await bench.cycles(300)
    words = [bench.memory.word(queue.at + COMPLETIONS_AT + 8 * entry) for entry in range(4)]
    assert words == [1 << 32, 1 << 32, 100 | 1 << 32, 0], words
    completions = [address for address, data in bench.writes.log if len(data) == 8]
    assert completions == [queue.at + COMPLETIONS_AT + 8 * entry for entry in range(3)]
    assert bench.writes.log[-1][0] == completions[-1], "the completion comes last"
    bench.check_frames()
    assert queue.received == 1


@cocotb.test()
async def a_descriptor_ring_that_cannot_be_read_fails_its_queue_alone(dut: SimHandleBase) -> None:
    bench = Bench(dut, 406, Habits(latency=(20, 40)))
    await bench.begin()
    await bench.start(0, DESCRIPTORS, 8, rx_ring_address=0x1000)
    if bench.count > 1:
        bench.queues.pop(0)
        await bench.start(1, RING, 64)
        await bench.cycles(200)
        assert bench.failed == [(0, CAUSE_DMA_ERROR)]
        for value in range(20):
            bench.send(bytes([value]) * 99, [1])
        await bench.settle()
    else:
        await bench.cycles(200)
        bench.to_send.append(bytes(64))
        await bench.cycles(60)
        assert bench.counters["rx_no_space"] == 1
        bench.queues.pop(0)
    assert bench.failed == [(0, CAUSE_DMA_ERROR)] and bench.counters["dma_errors"] >= 1
    await bench.stop(0)
    if bench.count > 1:
        await bench.stop(1)
        bench.queues.clear()
    queue = await bench.start(0, DESCRIPTORS, 8)
    bench.send(bytes(64))
    await bench.settle()
    assert queue.received == 1
