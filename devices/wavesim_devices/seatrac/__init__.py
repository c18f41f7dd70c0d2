"""Virtual Blueprint Subsea SeaTrac beacon: ``messages`` (serial protocol), ``exchanges`` (sound), ``device``."""
