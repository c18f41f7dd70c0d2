"""Virtual devices: a broker serves simulated values on a serial port or socket, so that unchanged software can read
them.
"""
