"""Tools that build the wheels: machine code of the kernels, for processors of several levels."""
