"""One change of a conda prefix, split between conda and an installer of wheels."""
