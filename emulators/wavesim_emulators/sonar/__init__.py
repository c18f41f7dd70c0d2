"""Imaging sonars and cameras. One engine of compiled kernels serves all sonars; cameras view the same scene."""
