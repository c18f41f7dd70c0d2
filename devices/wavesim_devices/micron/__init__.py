"""Virtual Tritech Micron scanning sonar."""
