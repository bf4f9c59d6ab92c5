"""What docs/speed.md says: ``page`` puts it together, ``goals`` holds what was asked for and what was reached."""
