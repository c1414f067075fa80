"""Locks: the exact packages of an environment, in the formats of conda-lock, pip, uv, conda and Docker.

`collect` makes a lock from observed facts, `writing` writes it, `reading` reads it back.
"""
