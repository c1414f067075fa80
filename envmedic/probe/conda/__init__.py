"""Conda's packages in a prefix, and what other installers put over them."""
