"""The torch family in a plan: the question to the compatibility rules and the members that change."""
