"""File-system operations: durable writes, copies, exchange of two paths, removal through a trash directory."""
