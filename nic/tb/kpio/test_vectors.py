"""The shared vectors of `spec/vectors` that are about kPIO+WC."""

from __future__ import annotations

from typing import Any

import cocotb

from kpio.bench import COUNTERS, LINE_BYTES, Bench, vectors


def parse_bytes(text: str) -> bytes:
    """Bytes as people write them in a case; see spec/vectors/README.md."""
    out = b""
    for token in text.split():
        body, _, repeat = token.partition("*")
        kind, _, digits = body.rpartition(":")
        if kind == "w":
            piece = int(digits, 16).to_bytes(8, "little")
        elif ".." in body:
            first, last = (int(part, 16) for part in body.split(".."))
            piece = bytes(range(first, last + 1))
        else:
            piece = bytes.fromhex(body)
        out += piece * int(repeat or 1)
    return out


def pieces(at: int, data: bytes, enables: int) -> list[tuple[int, bytes, int]]:
    """A write, cut into lines: window line, all 64 bytes, enables."""
    out = []
    done = 0
    while done < len(data):
        line, offset = divmod(at + done, LINE_BYTES)
        count = min(LINE_BYTES - offset, len(data) - done)
        mask = (enables >> done & (1 << count) - 1) << offset
        out.append((line, bytes(offset) + data[done : done + count] + bytes(LINE_BYTES - offset - count), mask))
        done += count
    return out


async def play(bench: Bench, case: dict[str, Any]) -> None:
    """Plays one case on queue 0."""
    device = case["device"]
    bench.frames.clear()
    bench.failed.clear()
    bench.taken_counters()
    await bench.start(
        0,
        kpio_eop=int(device["kpio_eop"], 16),
        hole_timeout_ns=device.get("hole_timeout_ns", 0),
        backpressure=int(device.get("backpressure", False)),
    )
    for index, event in enumerate(case["events"]):
        write = event["write"]
        data = parse_bytes(write["bytes"])
        enables = int(write["enables"], 16) if "enables" in write else (1 << len(data)) - 1
        for line, bytes64, mask in pieces(write["at"], data, enables):
            await bench.piece(0, line, bytes64, mask)
        await bench.quiet()
        then = event.get("then", {})
        place = f"{case['name']}, event {index} ({event.get('note', '')})"
        expected = [parse_bytes(text) for text in then.get("frames", [])]
        assert [frame for _, frame in bench.frames] == expected, place
        bench.frames.clear()
        if "freed_lines" in then:
            assert bench.freed[0] == then["freed_lines"], place
    expect = case["expect"]
    assert bench.freed[0] == expect["freed_lines"], case["name"]
    assert [cause for _, cause in bench.failed] == (
        [] if expect["status"]["active"] else [expect["status"]["cause"]]
    )
    counters = bench.taken_counters()
    for name in COUNTERS:
        assert counters[name] == expect["counters"].get(name, 0), f"{case['name']}: {name}"
    await bench.stop(0)


@cocotb.test()
async def every_shared_vector_is_played(dut: Any) -> None:
    """Frames, freed lines, status and counters are those of each case."""
    bench = Bench(dut)
    cases = vectors()
    lines = {case["device"]["window_lines"] for case in cases}
    assert len(lines) == 1, "one strap for all cases"
    await bench.open(window_lines=lines.pop())
    for case in cases:
        await play(bench, case)
        dut._log.info("%s: %s", case["name"], case["why"])


@cocotb.test()
async def a_case_that_is_wrong_is_found(dut: Any) -> None:
    """The player fails a case whose frame differs in a byte."""
    bench = Bench(dut)
    await bench.open(window_lines=8)
    case = next(case for case in vectors() if case["name"] == "kpio_ping")
    case["events"][1]["then"]["frames"] = ["10..76 78"]
    try:
        await play(bench, case)
    except AssertionError:
        return
    raise AssertionError("a wrong case went through")
