"""The checker of the kafka workload. `check` judges a history, `explain` says it in words."""

from workloads.kafka.checker.compose import check, error_count
from workloads.kafka.checker.explain import explain

__all__ = ["check", "error_count", "explain"]
