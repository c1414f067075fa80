"""What a conda prefix says of itself in `conda-meta`: records of both shapes, history, pins. Pure reading of given text."""
