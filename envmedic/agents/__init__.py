"""envmedic for coding agents: a server of the Model Context Protocol, and words for the files that agents read."""
