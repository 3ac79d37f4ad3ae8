"""A process that appends each line of stdin, KEY VALUE, and prints KEY OFFSET: `-m tests.producing URL`."""

import sys

from leaderless import open_log_sync

if __name__ == "__main__":
    with open_log_sync(sys.argv[1], create=False) as log:
        for line in sys.stdin:
            key, value = line.split()
            sys.stdout.write(f"{key} {log.append(key, value)}\n")
            sys.stdout.flush()
