"""Virtual UnetStack modem (Subnero and others), with the interface that UnetSocket clients use."""
