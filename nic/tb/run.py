"""Builds and runs the benches of one folder: `python nic/tb/run.py kpio`.

A folder has a `bench.toml`: the top module, and builds, each with parameters and the test modules that run on it. One
build a configuration, many tests. Sources are those of `nic/rtl/sources.f`, and `extra` ones of the folder.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from cocotb_tools.runner import get_runner

TB = Path(__file__).resolve().parent
ROOT = TB.parent.parent
SOURCES = ROOT / "nic" / "rtl" / "sources.f"
# What Verilator is asked for besides the sources: assertions on, and warnings left to the lint lane.
BUILD_ARGS = ["--assert", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-O3", "--output-split", "20000"]
# Functions that g++ likes, and no signal inside a module made visible: benches look at ports.
BUILD_ARGS += ["--output-split-cfuncs", "3000", "--no-public-flat-rw", "--public-depth", "1"]
# What runs once is not worth the compiler's time.
OBJECT_CACHE = ROOT / "nic" / "tools" / "objcache.sh"
MAKE_FLAGS = "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"


@dataclass(frozen=True)
class Build:
    """One configuration of the module under test."""

    name: str
    top: str
    sources: list[Path]
    parameters: dict[str, object]
    tests: list[str]


def listed_sources(path: Path) -> list[Path]:
    """The files that a source list names, one a line, relative to the root."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [ROOT / line for line in lines if line and not line.startswith(("//", "#", "+", "-"))]


def read_builds(folder: Path, sources: Path) -> list[Build]:
    """The builds of a folder's `bench.toml`."""
    bench = tomllib.loads((folder / "bench.toml").read_text())
    files = listed_sources(sources)
    files += [folder / name for name in bench.get("extra", [])]
    return [
        Build(build["name"], build.get("top", bench["top"]), files, build.get("parameters", {}), build["tests"])
        for build in bench["build"]
    ]


def count(results: Path) -> tuple[int, int]:
    """Tests that passed and failed, as a results file says."""
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    failed = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
    skipped = sum(1 for case in cases if case.find("skipped") is not None)
    return len(cases) - failed - skipped, failed


def run(folder: Path, build: Build, options: argparse.Namespace) -> tuple[int, int]:
    """Builds one configuration and runs its tests; tests that passed and failed."""
    work = options.build_dir.resolve() / folder.name / build.name
    work.mkdir(parents=True, exist_ok=True)
    os.environ["MAKEFLAGS"] = MAKE_FLAGS
    os.environ.setdefault("OBJCACHE", str(OBJECT_CACHE))
    os.environ.setdefault("BEELINE_OBJECTS", str(Path(sys.prefix) / "objects"))
    runner = get_runner("verilator")
    waves = ["--trace-fst"] if options.waves else []
    runner.build(
        sources=build.sources,
        hdl_toplevel=build.top,
        parameters=build.parameters,
        build_dir=work,
        build_args=[*BUILD_ARGS, *waves],
        waves=options.waves,
        verbose=options.verbose,
        log_file=None if options.verbose else work / "build.log",
    )
    if options.no_run:
        return 0, 0
    parameters = " ".join(f"{name}={value}" for name, value in build.parameters.items())
    results = runner.test(
        hdl_toplevel=build.top,
        test_module=build.tests,
        build_dir=work,
        test_dir=folder,
        results_xml=str(work / "results.xml"),
        test_filter=options.test,
        seed=options.seed,
        waves=options.waves,
        extra_env={"BENCH_PARAMETERS": parameters, "BENCH_ROOT": str(ROOT), "COCOTB_LOG_LEVEL": options.log},
    )
    return count(results)


def main() -> int:
    """Command line; 0 when every test passed and there was at least one."""
    folders = sorted(path.parent.name for path in TB.glob("*/bench.toml"))
    parser = argparse.ArgumentParser(description="Builds and runs the benches of a folder.")
    parser.add_argument("folder", nargs="+", choices=[*folders, "all"])
    parser.add_argument("--build", help="only this build of bench.toml")
    parser.add_argument("--no-run", action="store_true", help="build, and run no test")
    parser.add_argument("--test", help="only tests whose name matches this pattern")
    parser.add_argument("--short", action="store_true", help="fewer seeds in random tests")
    parser.add_argument("--seed", type=int, help="seed of the random tests; printed by each run")
    parser.add_argument("--waves", action="store_true", help="write an FST wave file")
    parser.add_argument("--verbose", action="store_true", help="show the compiler's output")
    parser.add_argument("--log", default="INFO", help="log level")
    parser.add_argument("--sources", type=Path, default=SOURCES, help="source list")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "target" / "tb", help="where to build")
    options = parser.parse_args()
    # Benches import each other's helpers by folder: `from kpio.twin import ...`.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(TB), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    sys.path.insert(0, str(TB))
    if options.short:
        os.environ["BENCH_SHORT"] = "1"
    names = folders if "all" in options.folder else options.folder
    passed = failed = 0
    for name in names:
        for build in read_builds(TB / name, options.sources):
            if options.build in (None, build.name):
                ok, bad = run(TB / name, build, options)
                print(f"{name}/{build.name}: {ok} passed, {bad} failed")
                passed, failed = passed + ok, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 0 if (passed or options.no_run) and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
