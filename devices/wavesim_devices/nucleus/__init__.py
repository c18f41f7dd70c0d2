"""Virtual Nortek Nucleus 1000: ASCII commands, and binary packets of its Doppler log, altimeter, AHRS and INS."""
