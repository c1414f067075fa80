"""Documents that a command prints and the terminal UI shows: values in, styled lines out."""
