"""Messages for interrupts: which one is asked for, again when the block fails, and none that the host did not grant."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from usplus.dma_ports import Bench

# Queues of the largest device that the bench's vector can name.
QUEUES = 64
# A watchdog, and no measurement.
TIMEOUT_CYCLES = 2000


async def raise_interrupt(dut: Any, queue: int) -> None:
    """Until the device has taken it."""
    dut.irq_valid.value = 1
    dut.irq_vector.value = queue
    await RisingEdge(dut.user_clk)
    while not int(dut.irq_ready.value):
        await RisingEdge(dut.user_clk)
    dut.irq_valid.value = 0


@cocotb.test()
@cocotb.parametrize(messages=[1, 2, 8, 32])
async def queues_beyond_the_granted_messages_share_them(dut: Any, messages: int) -> None:
    """The message is the queue modulo what the host granted, not what the device could use."""
    bench = Bench(dut)
    await bench.open(messages=messages)
    bench.watch_interrupts(messages, lambda _: None)
    queues = list(range(QUEUES))
    bench.random.shuffle(queues)
    for count, queue in enumerate(queues, 1):
        await raise_interrupt(dut, queue)
        # A message that comes again before its handler has run is the same one to the host.
        for _ in range(TIMEOUT_CYCLES):
            if len(bench.interrupts) >= count:
                break
            await RisingEdge(dut.user_clk)
    assert bench.interrupts == [queue % messages for queue in queues]


@cocotb.test()
async def an_interrupt_that_fails_is_raised_again(dut: Any) -> None:
    """And one that the host does not want is forgotten, so that the next one finds its way."""
    bench = Bench(dut)
    await bench.open()
    bench.watch_interrupts(32, lambda _: None)
    # In place of the model's answer: the block says that it could not.
    issue = bench.dev.functions[0].msi_cap.issue_msi_interrupt
    failures = 2

    async def fails(number: int, **more: Any) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            dut.cfg_interrupt_msi_fail.value = 1
            raise_sent = bench.dev.cfg_interrupt_msi_sent
            bench.dev.cfg_interrupt_msi_sent = None
            await RisingEdge(dut.user_clk)
            dut.cfg_interrupt_msi_fail.value = 0
            bench.dev.cfg_interrupt_msi_sent = raise_sent
            return
        await issue(number, **more)

    bench.dev.functions[0].msi_cap.issue_msi_interrupt = fails
    for vector in (7, 9):
        await raise_interrupt(dut, vector)
    await bench.cycles(200)
    assert failures == 0
    assert bench.interrupts == [7, 9]
    await bench.device.msi_set_enable(False)
    await bench.cycles(20)
    for _ in range(3):
        await raise_interrupt(dut, 9)
        await bench.cycles(20)
    assert int(dut.irq_ready.value)
    assert bench.interrupts == [7, 9]
