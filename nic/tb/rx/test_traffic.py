"""Frames come whole and in order into rings and buffers, under an unkind host; interrupts follow them."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import LINE_BYTES, Habits

from rx.bench import DESCRIPTORS, MAX_FRAME, RING, Bench
from rx.steer_twin import flow_hash
from seeds import seeds


def some_frame(rng: random.Random, longest: int) -> bytes:
    """A frame of any length, often with an IP header of any kind."""
    any_length, short = rng.randrange(1, longest + 1), rng.randrange(14, min(longest, 120) + 1)
    length = rng.choice([any_length, short, min(64, longest)])
    frame = bytearray(rng.randbytes(length))
    kind = rng.randrange(4)
    if length >= 14 and kind < 3:
        frame[12:14] = b"\x86\xdd" if kind == 2 else b"\x08\x00"
    if length >= 34 and kind < 2:
        frame[14] = 0x45 if kind == 0 else 0x40 | rng.randrange(16)
        frame[20:22] = rng.choice([b"\x00\x00", b"\x40\x00", b"\x20\x00", b"\x00\x01", b"\x80\x00"])
        frame[23] = rng.choice([6, 17, 132, 1])
    elif length >= 54 and kind == 2:
        frame[20] = rng.choice([6, 17, 132, 58])
    return bytes(frame)


async def random_run(dut: SimHandleBase, seed: int, mode: int) -> None:
    rng = random.Random(seed)
    habits = Habits(
        latency=rng.choice([(1, 5), (1, 200)]),
        request_ready=rng.choice([0.3, 1.0]),
        write_ready=rng.choice([0.2, 0.8, 1.0]),
        answer=rng.choice([0.5, 1.0]),
    )
    bench = Bench(dut, seed, habits)
    bench.wire_valid = rng.choice([0.3, 1.0])
    await bench.begin()
    numbers = sorted(rng.sample(range(min(bench.count, 64)), min(bench.count, rng.choice([1, 2, 4]))))
    longest = rng.choice([64, 1514, MAX_FRAME])
    for number in numbers:
        kind = mode or rng.choice([RING, DESCRIPTORS])
        # The smallest ring holds one of the longest frames, so that room is short much of the time.
        least = (-(-(8 + longest) // LINE_BYTES) - 1).bit_length() if kind == RING else 0
        entries = 1 << rng.randrange(least, least + 4)
        await bench.start(number, kind, entries, buffer_bytes=longest)
    for _ in range(12):
        for _ in range(rng.randrange(1, 25)):
            bench.send(some_frame(rng, longest))
        await bench.cycles(rng.randrange(1, 300))
        bench.check_frames(rng.randrange(1, 20))
        queue = bench.queues[rng.choice(numbers)]
        await bench.ring(queue.number, queue.next)
    await bench.settle()
    received = sum(queue.received for queue in bench.queues.values())
    assert bench.counters["rx_frames"] == received == len(bench.sent)
    assert bench.counters["rx_frame_bytes"] == sum(map(len, bench.sent))
    for name in ("bad_accesses", "dma_errors", "bad_lengths", "rx_no_space", "rx_oversize"):
        assert bench.counters[name] == 0, f"seed {seed}: {name}"
    assert not bench.failed
    await bench.cycles(100)
    assert len(bench.interrupts) >= 1 and set(bench.interrupts) <= set(numbers)


@cocotb.test()
async def frames_come_whole_and_in_order_through_rings(dut: SimHandleBase) -> None:
    for seed in seeds(12):
        await random_run(dut, seed, RING)


@cocotb.test()
async def frames_come_whole_and_in_order_into_buffers(dut: SimHandleBase) -> None:
    for seed in seeds(12):
        await random_run(dut, 100 + seed, DESCRIPTORS)


@cocotb.test()
async def rings_and_buffers_go_together(dut: SimHandleBase) -> None:
    for seed in seeds(6):
        await random_run(dut, 200 + seed, 0)


@cocotb.test()
async def every_length_and_place_is_written_exactly(dut: SimHandleBase) -> None:
    """All lengths up to three lines at all alignments of a buffer, with guard bytes around them."""
    bench = Bench(dut, 300, Habits(latency=(1, 5), request_ready=1.0, write_ready=1.0))
    await bench.begin()
    size = 512
    queue = await bench.start(0, DESCRIPTORS, 64, buffer_bytes=size)
    await bench.stop(0)
    for shift in range(0, 64, 1 if bench.count == 4 else 7):
        queue = await bench.start(0, DESCRIPTORS, 64, buffer_bytes=size, rx_moderation_frames=9)
        area = queue.at + 131072
        bench.memory.write(area, b"\xa5" * 65536)
        lengths = [1, 63 - shift or 1, 64 - shift, 65 - shift, 64, 127, 128 - shift, 129, 192, 191 - shift]
        for entry in range(64):
            queue.lend(entry, area + entry * 1024 + 64 + shift, size)
        # The first burst of descriptors was read before they were written: a new life reads them again.
        await bench.stop(0)
        bench.dut.start_valid_i.value = 1
        await bench.cycles(1)
        bench.dut.start_valid_i.value = 0
        await bench.idle()
        frames = [bench.rng.randbytes(length) for length in lengths]
        for frame in frames:
            bench.send(frame, [0])
        while len(queue.expected) > 0:
            await bench.cycles(1)
            bench.check_frames()
        for entry, frame in enumerate(frames):
            at = area + entry * 1024 + 64 + shift
            around = bench.memory.read(at - 64, 64) + bench.memory.read(at + len(frame), 64)
            assert around == b"\xa5" * 128, f"{len(frame)} bytes at {shift}: written beside"
        await bench.stop(0)


@cocotb.test()
async def the_header_word_is_written_after_the_bytes(dut: SimHandleBase) -> None:
    bench = Bench(dut, 301)
    await bench.begin()
    queue = await bench.start(0, RING, 4)
    for length in (100, 64, 14):
        bench.send(bytes([length]) * length)
        await bench.cycles(100)
        bench.check_frames()
        await bench.ring(0, queue.next)
        await bench.cycles(20)
    bench.writes.log.clear()
    # Line 5 of a ring of 4: two lines and a half before the end.
    bench.send(b"\x07" * 200)
    await bench.cycles(100)
    at = queue.at
    written = [(address - at, len(data)) for address, data in bench.writes.log]
    assert written == [(64 + 8, 56), (128, 64), (192, 64), (0, 16), (64, 8)], written
    bench.check_frames()
    assert queue.received == 4


@cocotb.test()
async def interrupts_are_moderated_by_count_and_time(dut: SimHandleBase) -> None:
    bench = Bench(dut, 302)
    await bench.begin()
    await bench.start(0, RING, 64, rx_moderation_frames=3, rx_moderation_ns=8000)
    for n in range(4):
        assert not bench.interrupts, f"after {n} frames" if n < 3 else "by count"
        bench.send(bytes(60))
        await bench.cycles(150)
        if n == 2:
            assert bench.interrupts == [0], "by count"
            bench.interrupts.clear()
    began = bench.now
    while bench.now < began + 6500:
        await bench.cycles(1)
        assert not bench.interrupts, "before its time"
    await bench.cycles(2000)
    assert bench.interrupts == [0], "by time"
    await bench.stop(0)
    bench.interrupts.clear()
    await bench.start(0, RING, 64, rx_moderation_frames=8)
    for n in range(3):
        bench.send(bytes(60))
        await bench.cycles(200)
        assert len(bench.interrupts) == n + 1, "without a time each is told"


@cocotb.test()
async def flows_spread_over_the_queues_that_receive_and_stay_there(dut: SimHandleBase) -> None:
    bench = Bench(dut, 303, Habits(write_ready=1.0))
    await bench.begin()
    if bench.count < 4:
        return
    numbers = [0, 1, 3]
    for number in numbers:
        await bench.start(number, RING, 1024)
    rng = random.Random(5)
    frames = [some_frame(rng, 200) for _ in range(60)]
    for frame in frames * 2:
        bench.send(frame)
    await bench.settle()
    received = [bench.queues[number].received for number in numbers]
    assert sum(received) == 120 and min(received) > 10, received
    await bench.stop(1)
    bench.queues.pop(1)
    for frame in frames:
        bench.send(frame)
    await bench.settle()
    assert bench.queues[3].received > received[2]
    assert len({flow_hash(frame) for frame in frames}) > 50
