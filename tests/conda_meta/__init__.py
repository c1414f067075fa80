"""The readers of conda-meta, held against conda's own."""
