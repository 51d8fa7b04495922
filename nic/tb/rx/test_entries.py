"""Frames that the host reads on the NIC: held reads, answers in order and in time, long frames behind them."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import PERIOD_NS, Habits

from rx.bench import CAUSE_BAD_LENGTH, DESCRIPTORS, OFF, PIPE, RING, WINDOW_LINES, Bench
from rx.entries import Readers
from seeds import seeds

ONES = (1 << 64) - 1
HELD = 64


async def random_run(dut: SimHandleBase, seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    bench = Bench(dut, seed, Habits(latency=(1, 100), write_ready=rng.choice([0.2, 0.8, 1.0])))
    bench.wire_valid = rng.choice([0.05, 0.3, 1.0])
    bench.answer_ready = rng.choice([0.2, 1.0])
    await bench.begin()
    readers = Readers(bench)
    numbers = sorted(rng.sample(range(min(bench.count, 64)), min(bench.count, rng.choice([1, 2, 4]))))
    longest = 0
    for number in numbers:
        mode = rng.choice([OFF, RING, DESCRIPTORS, PIPE])
        entry_lines = rng.choice([1, 2, 4])
        epoch = rng.randrange(256)
        longest = 48 if mode == OFF else max(longest, rng.choice([48, 600]))
        queue = await bench.start(
            number,
            mode,
            64,
            epoch=epoch,
            rx_reads=1,
            rx_notify_entries=4,
            entry_lines_log2=entry_lines.bit_length() - 1,
            entry_hold_ns=rng.choice([0, 300, 3000, 1 << 31]),
        )
        readers.add(queue, entry_lines, epoch)
    if any(reader.queue.mode == OFF for reader in readers.readers.values()):
        longest = 48
    goal = 80
    for count in range(60000):
        if len(bench.sent) + len(bench.to_send) < goal and rng.random() < 0.02:
            for _ in range(rng.randrange(1, 5)):
                bench.send(rng.randbytes(rng.randrange(1, longest + 1)))
        await readers.step()
        if len(bench.sent) >= goal and not any(queue.expected for queue in bench.queues.values()):
            break
    else:
        stuck = {n: (r.read, r.freed, len(r.queue.expected)) for n, r in readers.readers.items()}
        raise AssertionError(f"seed {seed}: stuck after {count} cycles, {stuck}")
    for name in ("bad_accesses", "dma_errors", "bad_lengths", "rx_no_space", "rx_oversize"):
        assert bench.counters[name] == 0, f"seed {seed}: {name}"
    assert bench.counters["rx_frames"] == len(bench.sent) and not bench.failed
    return bench.counters["held_reads"], bench.counters["held_read_timeouts"]


@cocotb.test()
async def every_frame_is_read_once_and_in_order(dut: SimHandleBase) -> None:
    held = late = 0
    for seed in seeds(16):
        more_held, more_late = await random_run(dut, 800 + seed)
        held, late = held + more_held, late + more_late
    dut._log.info("%d reads were held, %d of them for their whole time", held, late)
    assert held > late > 0


async def one_queue(dut: SimHandleBase, seed: int, hold_ns: int, **more: int) -> Bench:
    bench = Bench(dut, seed, Habits(write_ready=1.0))
    bench.answer_ready = 1.0
    await bench.begin()
    settings = {"epoch": 3, "rx_reads": 1, "entry_hold_ns": hold_ns} | more
    mode = settings.pop("mode", OFF)
    await bench.start(0, mode, 8, **settings)
    return bench


@cocotb.test()
async def the_table_is_bounded_and_every_read_has_its_time(dut: SimHandleBase) -> None:
    bench = await one_queue(dut, 820, 10000)
    for tag in range(HELD + 1):
        bench.asked.append((0, tag, tag))
    await bench.cycles(1200)
    assert list(bench.answers) == [(HELD, 0)], "one more is answered at once"
    assert bench.counters["held_reads"] == HELD and bench.counters["entry_reads"] == HELD + 1
    bench.send(bytes(range(1, 21)))
    await bench.cycles(600)
    tags = [tag for tag, _ in bench.answers]
    assert tags == [HELD, *range(8)], "those of the entry, in order"
    data = b"".join(value.to_bytes(8, "little") for _, value in list(bench.answers)[3:9])
    assert data == bytes(range(1, 21)) + bytes(28)
    begin = bench.now
    while len(bench.answers) < HELD + 1:
        await bench.cycles(1)
        assert bench.now - begin < 20000
    assert [tag for tag, _ in bench.answers][9:] == list(range(8, HELD))
    assert bench.counters["held_read_timeouts"] == HELD - 8


@cocotb.test()
async def a_read_is_held_no_longer_than_its_time(dut: SimHandleBase) -> None:
    bench = await one_queue(dut, 821, 2000)
    for wait in (0, 100, 333):
        await bench.cycles(wait)
        bench.answers.clear()
        bench.asked.append((0, 0, 7))
        begin = bench.now
        while not bench.answers:
            await bench.cycles(1)
        assert 2000 <= bench.now - begin <= 2000 + 40 * PERIOD_NS, bench.now - begin
        assert bench.answers[0] == (7, 0)


@cocotb.test()
async def a_stop_and_a_reset_answer_what_is_held(dut: SimHandleBase) -> None:
    bench = await one_queue(dut, 822, 1 << 31)
    if bench.count > 1:
        await bench.start(1, OFF, 8, epoch=3, rx_reads=1, entry_hold_ns=1 << 31)
        bench.asked.append((1, 3, 100))
    for tag in range(20):
        bench.asked.append((0, tag, tag))
    await bench.cycles(400)
    assert not bench.answers
    await bench.stop(0)
    await bench.cycles(10)
    assert list(bench.answers) == [(tag, 0) for tag in range(20)]
    bench.answers.clear()
    bench.asked.append((0, 0, 5))
    await bench.cycles(50)
    assert list(bench.answers) == [(5, ONES)] and bench.counters["bad_accesses"] == 1, "there is nothing to read"
    bench.answers.clear()
    await bench.start(0, OFF, 8, epoch=4, rx_reads=1, entry_hold_ns=1 << 31)
    bench.asked.append((0, 8, 6))
    await bench.cycles(50)
    assert not bench.answers
    await bench.reset_device()
    await bench.cycles(60)
    assert sorted(bench.answers) == ([(6, 0), (100, 0)] if bench.count > 1 else [(6, 0)])
    bench.queues.clear()
    bench.answers.clear()
    await bench.start(0, OFF, 8, epoch=5, rx_reads=1, entry_hold_ns=1 << 31)
    bench.asked.append((0, 0, 9))
    bench.to_send.append(bytes(range(40)))
    await bench.cycles(200)
    assert [tag for tag, _ in bench.answers] == [9] and bench.answers[0][1] == 40 | 1 << 16 | 5 << 24


@cocotb.test()
async def counts_of_freed_entries_are_checked_and_full_entries_hold_frames_off(dut: SimHandleBase) -> None:
    bench = await one_queue(dut, 823, 0)
    for value in range(WINDOW_LINES + 2):
        bench.to_send.append(bytes([value + 1]) * 20)
    await bench.cycles(600)
    assert bench.counters["rx_frames"] == WINDOW_LINES
    for freed in (WINDOW_LINES + 1, 1 << 32, (1 << 64) - 1):
        await bench.free_entries(0, freed)
    await bench.cycles(60)
    assert bench.counters["bad_accesses"] == 3 and bench.counters["rx_frames"] == WINDOW_LINES
    await bench.free_entries(0, 1)
    await bench.cycles(60)
    assert bench.counters["rx_frames"] == WINDOW_LINES + 1
    await bench.free_entries(0, 0)
    await bench.cycles(60)
    assert bench.counters["bad_accesses"] == 4
    bench.asked.append((0, 2, 1))
    bench.asked.append((0, 10, 2))
    await bench.cycles(60)
    values = [value.to_bytes(8, "little") for _, value in bench.answers]
    assert values == [bytes([WINDOW_LINES + 1]) * 8, bytes([2]) * 8]
    # Without a ring a frame that is longer than an entry is dropped.
    await bench.free_entries(0, WINDOW_LINES)
    bench.to_send.append(bytes(49))
    await bench.cycles(100)
    assert bench.counters["rx_oversize"] == 1 and bench.counters["rx_frames"] == WINDOW_LINES + 2


@cocotb.test()
async def entries_that_make_no_sense_do_not_start(dut: SimHandleBase) -> None:
    bench = Bench(dut, 824)
    await bench.begin()
    for mode in (OFF, RING):
        await bench.start(0, mode, 8, rx_reads=1, entry_lines_log2=3)
        assert bench.failed == [(0, CAUSE_BAD_LENGTH)]
        bench.failed.clear()
        await bench.stop(0)
