"""Helper program for py-rattler, started as `run.py`: a separate process, since py-rattler can crash at exit.

These modules are imported only in that process.
"""
