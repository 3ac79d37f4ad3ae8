"""Plays a transcript of programs: each command is run by `sh` in a folder that is empty at first.

    > say "$INIT" | node --log-level error    lines from c1 with these bodies, to a node as a process
    > for loop in asyncio trio; do node --backend $loop < /dev/null; done

Below stand what the command writes to stdout, then to stderr, and its exit status if it is not 0.
"""

import re
import subprocess
import sys
import tempfile

from tests.datadriven.runner import NOTHING, Player
from tests.programs import ROOT

HANGS_S = 60.0
TIME = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ ")  # of a line in a log
PRELUDE = f"""
INIT='{{"type":"init","msg_id":1,"node_id":"n0","node_ids":["n0"]}}'
ROOT={ROOT}
python() {{ {sys.executable} "$@"; }}
node() {{ python {ROOT}/node.py "$@"; }}
say() {{ for body; do printf '{{"src":"c1","dest":"n0","body":%s}}\\n' "$body"; done; }}
"""


class Programs(Player):
    """Runs commands."""

    def play(self, text: str) -> str:
        with tempfile.TemporaryDirectory() as self._folder:
            return super().play(text)

    def command(self, command: str) -> list[str]:
        done = subprocess.run(
            ["sh", "-c", PRELUDE + command],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        status = [f"exit status {done.returncode}"] if done.returncode else []
        errors = [TIME.sub("", line) for line in done.stderr.splitlines()]
        return [*done.stdout.splitlines(), *errors, *status] or [NOTHING]
