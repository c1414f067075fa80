"""Pages, list items and questions of the terminal UI: values in, styled lines out."""
