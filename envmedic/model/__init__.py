"""Frozen values that all other packages exchange. No effects here."""
