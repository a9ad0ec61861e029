#!/bin/sh
# Prints the Python (3.11 or newer, able to make virtual environments) that everything else starts from.
# In shell, because on a fresh machine there may be no Python at all yet.

usable() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for name in "$IACT_PYTHON" .venv/bin/python python3.13 python3.12 python3.11 python3 /usr/bin/python3; do
        if [ -n "$name" ] && usable "$name"; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

find_python && exit 0

export DEBIAN_FRONTEND=noninteractive
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "setup: installing Python" >&2
    apt-get update -qq >&2
    for version in 3 3.13 3.12 3.11; do
        apt-get install -y -qq --no-install-recommends "python$version" "python$version-venv" >&2 </dev/null
        find_python && exit 0
    done
fi
echo "setup: no Python 3.11 or newer with its venv module was found;" \
    "run: sudo apt-get install python3 python3-venv (or set IACT_PYTHON to one)" >&2
exit 1
