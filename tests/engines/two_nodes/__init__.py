"""Tests with real engines on two nodes, on which everything may happen."""
