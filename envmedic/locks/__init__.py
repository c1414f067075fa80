"""Locks: what is installed, exactly, in the formats that conda-lock, pip, uv, conda and Docker read."""
