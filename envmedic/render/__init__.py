"""Documents and events as text for people. Pure: values in, lines out."""
