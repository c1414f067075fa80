"""Locks: what is installed, exactly, in the formats that conda-lock, pip, uv, conda and Docker read.

`collect` makes one of what was observed, `writing` writes it, `reading` reads it back.
"""
