"""The commands: options to use cases, values to text, results to exit codes."""
