"""Holds ``envmedic.py``, which kernels load by itself: with this directory on their path, or from an installed envmedic."""
