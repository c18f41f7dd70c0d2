"""Studies over many runs: campaigns, learning environments, navigation and traffic."""
