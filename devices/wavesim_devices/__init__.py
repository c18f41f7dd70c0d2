"""Virtual devices: a broker serves simulated values on a serial port or socket, so that unmodified software can read
them.
"""
