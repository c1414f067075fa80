"""The command line: parse, call `api`, render. No decisions of its own."""
