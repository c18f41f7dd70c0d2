"""Virtual devices: a broker stands in for the driver, so that unchanged software talks to a serial port or a socket."""
