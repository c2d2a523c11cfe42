# debian.sh EARLIER.deb LATER.deb ADDRESS: the life of the package in another root.
. "$(dirname "$0")/root.sh"
cp "$1" $root/tmp/earlier.deb
cp "$2" $root/tmp/later.deb
address=$3
in_root() { chroot $root "$@"; }
as_tmshare() { exec chroot --userspec=tmshare:tmshare $root env -i PATH=/usr/bin:/bin HOME=/var/lib/tmshare TMSHARE_CLIENT_DATA=/var/lib/tmshare/client "$@"; } # ends the shell that it is in
dpkg_log=/mnt/dpkg

# Installed: user, folders, tokens that nobody else may read; units that systemd takes.
in_root dpkg -i /tmp/earlier.deb >$dpkg_log 2>&1 || { cat $dpkg_log; fail "it cannot be installed"; }
in_root id tmshare >/mnt/out || fail "there is no user"
[ "$(in_root stat -c '%U %a' /var/lib/tmshare/server)" = "tmshare 700" ] || fail "the data folder is open to others"
[ "$(in_root stat -c '%U %a' /etc/tmshare/tokens)" = "tmshare 600" ] || fail "tokens are open to others"
grep -Eq '^admin: [0-9a-f]{48}$' $root/etc/tmshare/tokens || fail "there is no token"
in_root systemd-analyze verify /usr/lib/systemd/system/tmshare-server.service /usr/lib/systemd/system/tmshare-server.socket \
  /usr/lib/systemd/system/tmshare-client.service >/mnt/out 2>&1 || { cat /mnt/out; fail "systemd does not take the units"; }
! grep -i tmshare /mnt/out || fail "systemd complains of the units"
for page in tmshare-server tmshare-client tmshare-server-serve tmshare-client-sync; do
  [ -s $root/usr/share/man/man1/$page.1 ] || fail "there is no page of the manual for $page"
done
in_root bash -c '. /usr/share/bash-completion/completions/tmshare-client && complete -p tmshare-client' >/mnt/out || fail "bash does not take the completions"

# Started, as its unit starts it: this command, this user, these variables. It publishes a map, and a client follows it.
unit=$root/usr/lib/systemd/system/tmshare-server.service
program=$(sed -n 's/^ExecStart=//p' $unit)
install -m 400 -o "$(in_root id -u tmshare)" $root/etc/tmshare/tokens $root/tmp/tokens # what LoadCredential= does
start() {
  as_tmshare $(sed -n 's/^Environment=//p' $unit | sed 's|%d|/tmp|') TMSHARE_LISTEN=$address TMSHARE_INTERVAL=0 $program >>/mnt/log 2>&1 &
  server=$!
  served in_root tmshare-server collections --server http://$address
}
start
cat >$root/tmp/map.xtm <<'MAP'
<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic><subjectIdentifier href="http://psi.example.org/a"/><name><value>A</value></name></topic></topicMap>
MAP
in_root tmshare-server import m /tmp/map.xtm --create --server http://$address >/mnt/out 2>&1 && fail "it is written without a token"
in_root tmshare-server import m /tmp/map.xtm --create --server http://$address --token-file /etc/tmshare/tokens >/mnt/out || fail "nothing can be published"
(as_tmshare tmshare-client subscribe http://$address/topicmaps/m) >/mnt/out
(as_tmshare tmshare-client sync) >/mnt/out 2>&1 && grep -q 'in step .*proven' /mnt/out || { cat /mnt/out; fail "a client cannot follow it"; }
stop

# Upgraded: settings stay, and so does what the earlier package has stored.
echo 'TMSHARE_LISTEN=127.0.0.1:9' >>$root/etc/default/tmshare-server
cp $root/etc/tmshare/tokens /mnt/tokens
in_root dpkg -i /tmp/later.deb >$dpkg_log 2>&1 || { cat $dpkg_log; fail "it cannot be upgraded"; }
grep -q 127.0.0.1:9 $root/etc/default/tmshare-server || fail "settings are lost"
cmp -s $root/etc/tmshare/tokens /mnt/tokens || fail "tokens are lost"
start
grep -q '^m ' /mnt/out || { cat /mnt/out; fail "the map is gone"; }
stop
(as_tmshare tmshare-server check --data /var/lib/tmshare/server) >/mnt/out 2>&1 || { cat /mnt/out; fail "the folder is damaged"; }

# Removed: data and settings stay. Purged: nothing stays.
in_root dpkg -r tmshare >$dpkg_log 2>&1 || { cat $dpkg_log; fail "it cannot be removed"; }
[ -e $root/var/lib/tmshare/server/node.json ] && [ -e $root/etc/default/tmshare-server ] || fail "removing has taken data or settings"
[ ! -e $root/usr/bin/tmshare-server ] || fail "removing has left the program"
in_root dpkg -P tmshare >$dpkg_log 2>&1 || { cat $dpkg_log; fail "it cannot be purged"; }
left=$(in_root find /usr /etc /var/lib -name '*tmshare*')
[ -z "$left" ] || fail "purging has left $left"
! in_root id tmshare >/mnt/out 2>&1 || fail "purging has left the user"
