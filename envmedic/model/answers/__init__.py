"""Documents that answer a question of the user."""
