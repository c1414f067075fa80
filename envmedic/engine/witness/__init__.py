"""Other machines that share an environment: they are asked about a repair of it before and after the one exchange."""
