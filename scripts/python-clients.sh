#!/usr/bin/env bash
# Installs clients of YOURLS and Shlink that others wrote, and what they need, once for each version
# of this list. Prints the folder, for PYTHONPATH. Needs Python 3.10 or newer with pip.
set -euo pipefail
packages=(
  yourls==1.2.3 pyourls3==1.0.1 mcp-shlink==0.1.6 PyShlink==0.2.1
  annotated-types==0.8.0 anyio==4.16.0 certifi==2026.10.19.post1 charset-normalizer==3.5.3
  click==8.5.1 h11==0.16.0 httpcore==1.0.9 httpx==0.28.1 idna==3.20 logbook==1.10.1
  pydantic==2.14.4 pydantic-core==2.50.5 represent==2.2.0 requests==2.34.2 six==1.17.0
  typing-extensions==4.16.0 typing-inspection==0.4.5 urllib3==2.8.0
)
version=$(printf '%s\n' "${packages[@]}" "$(python3 --version)" | cksum | cut -d ' ' -f 1)
folder="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/hopcode-tests/python-clients-$version"
mkdir -p "$folder"
# Test files that run at the same time wait for the first one's installation.
exec 9>"$folder/lock"
flock 9
if [ ! -e "$folder/complete" ]; then
  # Without dependencies: one client names versions that today's Python cannot run.
  python3 -m pip --disable-pip-version-check install --quiet --no-deps --upgrade \
    --target "$folder" "${packages[@]}" >&2
  touch "$folder/complete"
fi
echo "$folder"
