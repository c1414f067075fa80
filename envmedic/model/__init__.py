"""The vocabulary of envmedic: frozen values that every other package speaks. No effects here."""
