"""Virtual Water Linked Underwater GPS G2 topside."""
