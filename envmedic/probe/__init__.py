"""Read-only observation of hosts and environments, without importing anything of them."""
