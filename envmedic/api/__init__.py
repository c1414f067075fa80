"""The use cases, a module for each. CLI and terminal UI call these and nothing below them."""
