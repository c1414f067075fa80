"""Ratios of envmedic against plain baselines, measured in one run on one machine: ``make bench``."""
