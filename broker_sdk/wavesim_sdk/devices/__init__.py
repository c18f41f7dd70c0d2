"""Virtual devices: unchanged software reads a serial port or socket that a broker serves with simulated values."""
