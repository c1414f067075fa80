"""Running commands so that a clone appears at the path of its environment."""
