"""Virtual WHOI Micro-Modem: ``sentences`` (serial protocol), ``packets`` (signals in the water), ``device``."""
