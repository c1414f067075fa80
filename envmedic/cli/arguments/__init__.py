"""The arguments and options of each command."""
