"""The checker of the kafka workload. `check` judges a history, `explain` says it in words."""

from workloads.kafka.checker.compose import AT_THE_END, check, error_count, stops_early
from workloads.kafka.checker.explain import by_cause, explain

__all__ = ["AT_THE_END", "by_cause", "check", "error_count", "explain", "stops_early"]
