"""The coordination store port and one module per implementation."""
