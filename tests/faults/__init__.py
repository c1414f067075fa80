"""Faults survived: what is done to envmedic and its surroundings while it works, and what is left of the environment."""
