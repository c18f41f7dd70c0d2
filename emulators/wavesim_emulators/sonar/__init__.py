"""Imaging sonars: one engine of compiled kernels for all of them; and cameras, which view the same scene."""
