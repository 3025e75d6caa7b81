#!/usr/bin/env bash
# Builds Pebble, a certificate authority for tests, and its DNS server, once for each version. Prints
# the folder that has both programs. Go comes from PATH or from where its own packages put it.
set -euo pipefail
version=2.10.3
folder="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/hopcode-tests/pebble-$version"
PATH="$PATH:/usr/local/go/bin:/usr/lib/go/bin"
mkdir -p "$folder"
# Test files that run at the same time wait for the first one's build.
exec 9>"$folder/lock"
flock 9
for name in pebble pebble-challtestsrv; do
  [ -x "$folder/$name" ] && continue
  GOBIN="$folder" go install "github.com/letsencrypt/pebble/v2/cmd/$name@v$version" >&2
done
echo "$folder"
