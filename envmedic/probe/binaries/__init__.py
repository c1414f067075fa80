"""Compiled files of an environment: the torch family, extensions and the libraries they need."""
