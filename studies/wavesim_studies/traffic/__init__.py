"""Traffic: encounters that are laid out, sailed and scored by the rules of the road."""
