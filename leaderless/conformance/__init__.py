"""What another implementation of docs/SPEC.md is tested with."""
