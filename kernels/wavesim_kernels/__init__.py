"""Elementary functions compiled, the kernel compiler and keyed random numbers: the same bits on every machine."""
