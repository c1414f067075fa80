"""Installers: exact wheels are resolved and fetched here; the commands they name run in a staged environment."""
