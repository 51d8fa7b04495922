#!/bin/sh
# Compiles C++ as `objcache.sh g++ ...` would without the first word, and keeps what comes of Verilator's own sources:
# they are the same in every simulation, and take longer to compile than most modules. (cocotb's verilator.cpp is not: it includes
# the header of the design.)
#
# Verilator's makefiles call it by $OBJCACHE. The objects are kept beside the tools, whose folder is made anew with them.
set -eu

for last; do :; done
case $last in
*/verilated*.cpp) ;;
*) exec "$@" ;;
esac

# The command without the name of the output, which comes after -o.
key=
object=
previous=
for word; do
  [ "$previous" = -o ] && object=$word || key="$key $word"
  previous=$word
done
[ -n "$object" ] || exec "$@"
kept=${BEELINE_OBJECTS:?the folder of the kept objects}/$(echo "$key" | sha256sum | cut -c1-32)

if [ ! -f "$kept.o" ]; then
  mkdir -p "$BEELINE_OBJECTS"
  "$@"
  # Two that compile it at once put the same there.
  cp "${object%.o}.d" "$kept.$$.d" && mv "$kept.$$.d" "$kept.d"
  cp "$object" "$kept.$$.o" && mv "$kept.$$.o" "$kept.o"
  exit 0
fi
cp "$kept.d" "${object%.o}.d"
cp "$kept.o" "$object"
