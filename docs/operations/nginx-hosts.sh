#!/bin/sh
# Writes the list of ready hosts for nginx, which has no health checks. Run it as a service:
#   nginx-hosts.sh /etc/nginx/hopcode-hosts 10.0.0.1:3000 10.0.0.2:3000
# RELOAD: the command after a change. Default: nginx -s reload.
file=$1
shift
[ $# -gt 0 ] || { echo "usage: $0 FILE HOST:PORT..." >&2; exit 2; }

list_hosts() {
  unready=
  ready=
  for host; do
    if curl -fs -m 1 -o /dev/null "http://$host/-/ready"; then ready=yes; else unready="$unready $host"; fi
  done
  for host; do
    # A host that is not ready still redirects, so if none is ready, all get requests.
    case "$ready $unready " in
      yes*" $host "*) echo "server $host down;" ;;
      *) echo "server $host;" ;;
    esac
  done
}

while :; do
  list=$(list_hosts "$@")
  if [ "$list" != "$(cat "$file" 2>/dev/null)" ]; then
    echo "$list" >"$file.new" && mv "$file.new" "$file"
    ${RELOAD:-nginx -s reload}
  fi
  sleep 1
done
