"""The models that are proved, by the names that the manifest has for them."""

from specs.manifest import PASS, Configuration, load
from specs.proof import durable_commits, head_log_laws, task_claiming, two_step_assign, vacuum
from specs.proof.language import Model

LARGEST = 30_000  # states of a configuration that is visited
MODELS: dict[str, Model] = {
    "HeadLog": head_log_laws.MODEL,
    "DurableCommits": durable_commits.MODEL,
    "TaskClaiming": task_claiming.MODEL,
    "Vacuum": vacuum.MODEL,
    "TwoStepAssign": two_step_assign.MODEL,
}


def not_seen(configuration: Configuration) -> str:
    """Why no proof here can see what is wrong in a configuration; "": it can."""
    if configuration.specification == "FairSpec":
        return "liveness: TLC checks it at small sizes"
    wrong = MODELS[configuration.model].wrong
    reasons = (wrong[pair].unseen for pair in configuration.replace.items() if pair in wrong)
    return "; ".join(filter(None, reasons))


def broken(configuration: Configuration) -> Model:
    """The model with the definitions that a configuration names.

    Raises:
        KeyError: what the manifest puts in is not written here.
    """
    model, pairs = MODELS[configuration.model], list(configuration.replace.items())
    found = [(operator, model.wrong[operator, other]) for operator, other in pairs]
    instead = {operator: wrong.instead for operator, wrong in found if wrong.instead}
    beside = {name: formula for _, wrong in found for name, formula in wrong.beside}
    return model.patched(instead | beside, [name for _, wrong in found for name in wrong.untrue])


def wrong_configurations(name: str) -> list[Configuration]:
    """Those of the manifest that break a decision of this model."""
    return [c for c in load().configurations if c.model == name and c.broken]


def small_configurations(name: str) -> list[Configuration]:
    """Those whose states are visited: those that the model names, or all that are right, with few states."""
    return [
        c
        for c in load().configurations
        if c.model == name
        and (c.size, c.expect) == ("small", PASS)
        and c.specification != "FairSpec"
        and (c.distinct_states or 0) <= LARGEST
        and c.name in (MODELS[name].visited or (c.name,))
        and not not_seen(c)
    ]
