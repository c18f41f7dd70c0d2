"""Comparison of a real run with simulations of it: `wavesim compare`."""
