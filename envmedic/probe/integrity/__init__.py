"""Damage of an environment that neither its lists of files nor its compiled modules show."""
