#!/bin/dash
# The first program of a guest. It runs what comes over the second serial line, one command after the other, and answers each by
# "@@NUMBER STATUS BYTES" and as many bytes of output; or, with `beeline.shell`, a shell on the console.
/bin/busybox mkdir -p /proc /sys /dev /run /tmp /root /busybox
# Behind all others in the path: busybox prefers its own programs over those of the packages once it runs one of them.
/bin/busybox --install -s /busybox
export PATH=/beeline:/usr/sbin:/usr/bin:/sbin:/bin:/busybox HOME=/root TERM=${TERM:-linux}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
ip link set lo up
cd /root

case $(cat /proc/cmdline) in
*beeline.shell*)
    echo "A shell of the guest. \`exit\` powers it off, as ctrl-a x does."
    setsid cttyhack dash -i
    poweroff -f
    ;;
esac

stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo '@@0 0 0' >&3
while read -r number line <&3; do
    printf '%b' "$line" >/run/command
    dash /run/command >/run/output 2>&1 </dev/null 3>&-
    printf '@@%s %d %d\n' "$number" $? "$(stat -c %s /run/output)" >&3
    cat /run/output >&3
done
poweroff -f
