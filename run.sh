#!/bin/sh
# Starts a node; this is what a test bench is given as --bin. Works from any working directory and through links.
here=$(readlink -f "$0")
here=${here%/*}
case $here in
*/leaderless/_bench) python="${here%/lib/*}/bin/python" ;; # installed with the bench
*) python="$here/.venv/bin/python" ;;
esac
if [ ! -x "$python" ]; then
  python=python3
  "$python" -c 'import anyio, orjson' 2>/dev/null || {
    echo "run.sh: no environment: run 'make setup' in $here (or give python3 anyio and orjson)" >&2
    exit 1
  }
fi
exec "$python" "$here/node.py" "$@"
