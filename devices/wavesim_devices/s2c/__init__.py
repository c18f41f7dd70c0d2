"""Virtual EvoLogics S2C modem in NET mode, with USBL if its transducer has a head."""
