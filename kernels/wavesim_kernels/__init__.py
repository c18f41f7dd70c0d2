"""Compiled elementary functions, the kernel compiler and keyed random numbers, with the same bits on every machine."""
