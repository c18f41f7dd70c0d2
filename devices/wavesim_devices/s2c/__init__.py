"""Virtual EvoLogics S2C modem in NET mode. It also provides USBL positions if its transducer has a USBL head."""
