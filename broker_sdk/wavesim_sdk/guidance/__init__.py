"""Guidance and control for on-board programs: waypoints, speed, heading, other vessels, collision avoidance."""
