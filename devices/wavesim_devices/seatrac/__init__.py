"""Virtual Blueprint Subsea SeaTrac beacon: the serial protocol (``messages``), the sound (``exchanges``), and the
``device``.
"""
