"""Repairs of many machines: on paper with a model of the engine, and by real engines where they are installed."""
