"""Studies: many runs, judged. Campaigns, learning environments, navigation, traffic."""
