"""One file for the machines of a fleet: how it is made, and tests of it."""
