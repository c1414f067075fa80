"""Resolution by uv, and the origin of installed distributions."""
