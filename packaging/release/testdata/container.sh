# container.sh ARCHIVE STEPS COPIED USER ADDRESS "NAME=VALUE..." COMMAND...: makes an image as the steps of a Containerfile say, in another root
# in the place of the image that they begin with, and runs it as an engine does: as that user, with a root that is read-only, and one volume.
. "$(dirname "$0")/root.sh"
archive=$1 steps=$2 copied=$3 user=$4 address=$5 variables=$6
shift 6
mkdir -p $root/unpacked
tar -xzf "$archive" -C $root/unpacked
chroot $root sh -euc "$steps"
image=/mnt/image
mkdir $image && cp -a "$root$copied." $image && chown root:root $image && chmod 755 $image
mkdir /mnt/volume && cp -a $image/data/. /mnt/volume && chown --reference=$image/data /mnt/volume && chmod --reference=$image/data /mnt/volume
mount --bind $image $image
mount -o remount,bind,ro,nosuid $image
mount --bind /mnt/volume $image/data
inside() { chroot --userspec="$user" $image "$@"; }
[ ! -e $image/bin ] && [ ! -e $image/usr ] || fail "the image has more than the programs"
[ -s $image/etc/ssl/certs/ca-certificates.crt ] || fail "the image has no certificates of authorities"

env -i PATH="$PATH" $variables TMSHARE_LISTEN=$address TMSHARE_INTERVAL=0 chroot --userspec="$user" $image "$@" >/mnt/log 2>&1 &
server=$!
served inside /tmshare-server collections --server http://$address
grep -q "^Uid:	${user%:*}	" $root/proc/$server/status || fail "it runs as another user"
printf '<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic><subjectIdentifier href="http://psi.example.org/a"/><name><value>A</value></name></topic></topicMap>' |
  inside /tmshare-server import m - --create --server http://$address >/mnt/out || fail "nothing can be published"
inside /tmshare-client --data /data/copy subscribe http://$address/topicmaps/m >/mnt/out
inside /tmshare-client --data /data/copy sync >/mnt/out 2>&1 && grep -q 'in step .*proven' /mnt/out || { cat /mnt/out; fail "a client cannot follow it"; }
env -i PATH="$PATH" $variables chroot --userspec="$user" $image /tmshare-client --data /data/copy check >/mnt/out 2>&1 || { cat /mnt/out; fail "a command that needs other files fails"; }
stop
