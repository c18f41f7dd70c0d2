"""File formats of sonar surveys: KMALL and XTF."""
