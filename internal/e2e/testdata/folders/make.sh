#!/bin/sh
# make.sh PROGRAMS FORMAT makes the fixture of a format of data folders, with the programs in the folder PROGRAMS: a server's folder with a map,
# its history and a snapshot, and a map derived of it where the programs know such; a client's folder with a subscription; the map as it is.
set -eu
programs=$1 format=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) && mkdir "$work/folders"
cd "$work/folders"
url=http://127.0.0.1:18080
# until COMMAND... runs a command until it succeeds, for 10 seconds at most.
until_done() { for i in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; "$@"; }
"$programs/tmshare-server" serve --data server --listen 127.0.0.1:18080 --map cities="$here/before.xtm" 2>"$work/log" &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$work"' EXIT
until_done curl -fsS $url/topicmaps/cities
"$programs/tmshare-client" subscribe $url/topicmaps/cities --data client
"$programs/tmshare-client" sync --data client
"$programs/tmshare-server" import cities "$here/after.xtm" --server $url
"$programs/tmshare-server" snapshot cities --server $url
"$programs/tmshare-client" sync --data client
"$programs/tmshare-client" export --data client expected.xtm
if "$programs/tmshare-server" derive --help >/dev/null 2>&1; then
  "$programs/tmshare-server" derive all --from cities --server $url
  until_done curl -fsS $url/topicmaps/all
fi
kill $server
wait $server || true
rm -f ./*/badger/LOCK ./*/control.sock
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cSf - server client expected.xtm | gzip -9n >"$here/format$format.tar.gz"
