"""Navigation: a reference filter and smoother, and how estimates are judged."""

from wavesim_studies.navigation.filter import Design, Filter, State, Track, estimate

__all__ = ["Design", "Filter", "State", "Track", "estimate"]
