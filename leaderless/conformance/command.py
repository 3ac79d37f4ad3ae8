"""What `leaderless conformance` does: it plays the rows of docs/SPEC.md with a program, and shows each."""

from typing import Any

from leaderless.api.output import note, show, show_text
from leaderless.conformance.golden import cases
from leaderless.conformance.programs import playing
from leaderless.conformance.rows import ROWS, rules_of
from leaderless.errors import Unfit


async def conformance(
    program: str, store: str, only: str | None, patience_s: float, as_json: bool
) -> dict[str, Any]:
    """How many rows hold, failed, and were not tried; with `error` if one failed.

    `program`: its command. `store`: "sqlite" or "s3". `only`: rows of this rule. `patience_s`: for one answer
    of the program, in seconds. `as_json`: a row is shown as an object. Raises `Unfit`.
    """
    kind = store.partition(":")[0]
    rows = [row for row in ROWS if only is None or only in rules_of(row)]
    if kind not in ("sqlite", "s3") or not rows:
        raise Unfit("--store must be sqlite or s3, and --only a rule from R1 to R58")
    golden = cases()
    found: dict[str, list[str]] = {"ok": [], "FAILED": [], "not tried": []}
    async with playing(program, kind, patience_s) as player:
        for row in rows:
            note(f"{row.rules} ...")
            states = [case for case in golden if case.rules[0] in rules_of(row)]
            result, why = await player.row(row, states)
            found[result].append(row.rules)
            if as_json:
                show({"rules": row.rules, "holds": row.holds, "result": result, "why": why}, True)
            else:
                for line in [f"{result:10} {row.rules:22} {row.holds}", *why.splitlines()]:
                    show_text(line)
    counts: dict[str, Any] = {name: len(rules) for name, rules in found.items()}
    return counts | ({"error": f"FAILED: {'; '.join(found['FAILED'])}"} if found["FAILED"] else {})
