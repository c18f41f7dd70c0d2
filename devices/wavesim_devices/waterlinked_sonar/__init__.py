"""Virtual Water Linked Sonar 3D-15."""
