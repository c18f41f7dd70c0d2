"""Virtual WHOI Micro-Modem: ``sentences`` (serial protocol), ``packets`` (what goes through the water), ``device``."""
