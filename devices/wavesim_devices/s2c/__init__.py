"""Virtual EvoLogics S2C modem in NET mode. It has USBL if its transducer has a USBL head."""
