"""Virtual topside unit of a Water Linked Underwater GPS G2."""
