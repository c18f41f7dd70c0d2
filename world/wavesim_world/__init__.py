"""Description of a world: configuration, vehicle models and ocean fields."""
