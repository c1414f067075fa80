"""Use cases that answer from what envmedic knows, and renew it."""
