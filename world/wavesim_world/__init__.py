"""Description of a world: configuration, vehicle models and the fields of the ocean."""
