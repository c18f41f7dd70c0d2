"""Imaging sonars: one engine of compiled kernels for all of them."""
