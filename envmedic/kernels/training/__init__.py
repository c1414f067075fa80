"""Checks of what training uses: layers, losses, selection, randomness, optimizers; each against fp64."""
