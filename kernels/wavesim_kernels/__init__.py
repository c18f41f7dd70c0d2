"""Compiled elementary functions, the kernel compiler and keyed random numbers, with bit-identical results on every
machine.
"""
