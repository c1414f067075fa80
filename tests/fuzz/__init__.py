"""Fuzzing of everything that reads what strangers wrote: `make fuzz`, and a slice of it in `make test`."""
