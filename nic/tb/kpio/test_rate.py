"""One line a cycle, and how long a frame takes."""

from __future__ import annotations

from typing import Any

import cocotb

from kpio.bench import LINES, MAX_FRAME_BYTES, QUEUES, Bench, default_eop, stuffed

EOP = default_eop()


async def rate(dut: Any, frame_bytes: int, queues: int, count: int) -> None:
    """Hands in `count` frames back to back and looks at how many cycles they take, in and out."""
    bench = Bench(dut)
    await bench.open()
    for queue in range(queues):
        await bench.start(queue)
    sent = [(n % queues, bytes((n * 3 + i) & 0xFF for i in range(frame_bytes))) for n in range(count)]
    at = [0] * queues
    bench.taken_at.clear()
    for queue, one in sent:
        at[queue] = await bench.lines(queue, at[queue], stuffed(one, EOP))
    await bench.quiet()
    assert bench.frames == sent
    lines = sum(at)
    taken = bench.taken_at[-1] - bench.taken_at[0] + 1
    left = bench.frame_at[-1] - bench.frame_at[0] + 1
    dut._log.info(
        "%d frames of %d B, %d queues: %d lines in %d cycles, out in %d", count, frame_bytes, queues, lines, taken, left
    )
    assert taken == lines, "a line a cycle comes in"
    assert left <= lines, "a line a cycle goes out"


@cocotb.test()
async def frames_of_one_line_one_queue(dut: Any) -> None:
    """The hardest case for the egress: a frame a cycle."""
    await rate(dut, 56, 1, 400)


@cocotb.test()
async def frames_of_one_line_all_queues(dut: Any) -> None:
    """Every queue in turn."""
    await rate(dut, 16, QUEUES, 400)


@cocotb.test()
async def frames_of_two_lines(dut: Any) -> None:
    """64 bytes: a line and a line of signatures."""
    await rate(dut, 64, min(QUEUES, 2), 300)


@cocotb.test()
async def frames_of_many_lines(dut: Any) -> None:
    """Frames of three quarters of a window, from all queues."""
    size = min(LINES * 48, MAX_FRAME_BYTES)
    await rate(dut, size // 8 * 8, QUEUES, 200)


@cocotb.test()
async def latency_of_a_frame_of_one_line(dut: Any) -> None:
    """As the contract of kpio.sv says."""
    bench = Bench(dut)
    await bench.open()
    await bench.start(0)
    await bench.lines(0, 0, stuffed(bytes(range(1, 57)), EOP))
    await bench.quiet()
    cycles = bench.frame_at[0] - bench.taken_at[0]
    dut._log.info("piece in to first beat out: %d cycles", cycles)
    assert cycles == 14
