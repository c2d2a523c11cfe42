# Makes another root at $root: the system of this machine, with its devices and processes, whose changes are in memory.
set -eu
fail() { echo "FAILED: $*" >&2; exit 1; }
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/changes /mnt/scratch /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/changes,workdir=/mnt/scratch /mnt/root
root=/mnt/root
mount -t proc proc $root/proc
mount --rbind /dev $root/dev
mount -t tmpfs -o mode=1777 tmpfs $root/tmp

# served COMMAND... waits until a command that asks the process $server succeeds. What it prints is in /mnt/out.
served() {
  tries=0
  until "$@" >/mnt/out 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] && kill -0 $server || { cat /mnt/log; fail "the server does not start"; }
    sleep 0.1
  done
}
stop() { kill $server && wait $server || { cat /mnt/log; fail "the server does not stop"; }; }
