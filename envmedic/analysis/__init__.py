"""Typed conclusions from observed facts, by area, for the flat facts of diagnosis and the planner's remedies. Pure."""
