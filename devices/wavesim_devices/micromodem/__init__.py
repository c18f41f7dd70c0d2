"""Virtual WHOI Micro-Modem: the serial protocol (``sentences``), the signals in the water (``packets``), and the
``device``.
"""
