"""From findings to plans, and the choice of the next plan in a repair."""
