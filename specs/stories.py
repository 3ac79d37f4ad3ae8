"""`python -m specs.stories`: tell TLC's counterexamples in docs/evidence/models, with pictures.

`story.json` beside a model keeps the shortest way to a broken law. Of each step it has the action and the
variables that it changes, as TLC writes them, and what a person says of it: a sentence and the messages. A
message is `[number, from, to, body]` when it is sent, and its number when it arrives.

The command asks TLC again. It keeps the words of a step whose action is still the same. Those of any other
step are left empty: a person must tell it anew.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from runs.plots.lamport import lamport_svg
from specs import tlc
from specs.manifest import SPECS_DIR, Configuration, load

DOCS = SPECS_DIR.parent / "docs"
BEGIN, END = "<!-- events -->", "<!-- end of events -->"  # around the events in a page
TOLD = ("BookKeeper", "UncleanElection", "TwoStepAssign", "TaskClaiming", "LeaderlessLog")
UNTOLD: dict[str, Any] = {"says": "", "messages": []}
Event = dict[str, Any]  # of a network journal


@dataclass(frozen=True)
class Story:
    """A broken configuration, the page that tells it, and its steps; the first is TLC's initial state.

    `names`: what the page calls a part of the model.
    """

    configuration: str
    page: str
    title: str
    names: Mapping[str, str]
    steps: Sequence[dict[str, Any]]

    @property
    def file(self) -> Path:
        """Where it is kept."""
        return SPECS_DIR / self.configuration.partition("/")[0] / "story.json"

    @property
    def picture(self) -> Path:
        """Where its diagram is."""
        return DOCS / "images" / f"model-{self.page}.svg"

    @property
    def checked(self) -> Configuration:
        """The configuration that TLC checks."""
        return next(c for c in load().configurations if c.title == self.configuration)

    def events(self) -> list[list[Event]]:
        """The messages of each step as events of a network journal, one millisecond apart."""
        told: list[list[Event]] = []
        sent: dict[int, Event] = {}
        for step in self.steps:
            told.append([])
            for each in step["messages"]:
                arrives = isinstance(each, int)
                if not arrives:
                    sent[each[0]] = dict(zip(("id", "src", "dest", "body"), each, strict=True))
                message = sent[each if arrives else each[0]]
                time = sum(map(len, told)) * 1_000_000
                event = {"type": "recv" if arrives else "send", "time": time, "message": message}
                told[-1].append(event)
        return told

    def lines(self) -> list[str]:
        """The numbered events of the page."""
        return [f"{number}. {step['says']}" for number, step in enumerate(self.steps) if number]

    def svg(self) -> str:
        """The diagram."""
        return lamport_svg([event for events in self.events() for event in events], self.title)


STORIES = tuple(
    Story(**json.loads((SPECS_DIR / model / "story.json").read_text())) for model in TOLD
)


def way(outcome: tlc.Outcome) -> list[dict[str, Any]]:
    """TLC's way to the broken law: of each step the action, and the variables that it changes."""
    before, steps = dict[str, str](), []
    for state in outcome.states:
        after = {name: " ".join(value.split()) for name, value in state.variables.items()}
        changes = {name: after[name] for name in sorted(after) if after[name] != before.get(name)}
        steps.append({"action": state.action, "changes": changes})
        before = after
    return steps


def differs(title: str, outcome: tlc.Outcome) -> bool:
    """Whether TLC goes another way than the story of this configuration, if there is one."""
    kept = [
        [{name: step[name] for name in ("action", "changes")} for step in story.steps]
        for story in STORIES
        if story.configuration == title
    ]
    return bool(kept) and kept != [way(outcome)]


def main() -> None:
    """Ask TLC, and write the stories, the events in the pages, and the pictures."""
    for old in STORIES:
        module, config = old.checked.module, old.checked.config_text()
        found = way(tlc.parse(tlc.run(module, config, heap_mb=1024, timeout_s=600)[0]))
        steps = [
            (told if told["action"] == step["action"] else UNTOLD) | step
            for told, step in zip_longest(old.steps, found, fillvalue={"action": ""})
            if step["action"]
        ]
        story = Story(**asdict(old) | {"steps": steps})
        story.file.write_text(json.dumps(asdict(story), indent=1) + "\n")
        page = DOCS / "evidence" / "models" / f"{story.page}.md"
        before, rest = page.read_text().split(BEGIN)
        page.write_text(before + "\n".join([BEGIN, *story.lines(), END]) + rest.split(END)[1])
        story.picture.write_text(story.svg())


if __name__ == "__main__":
    main()
