"""Hydrophones: samples of the pressure, synthesised from the fronts of each signal and from noise."""
