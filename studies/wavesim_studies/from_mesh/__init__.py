"""Model of a vehicle, computed from the mesh of its hull."""
