"""Virtual converters of a software modem, served with the UnetStack acoustic streaming protocol, version 2 (UASP2)."""
