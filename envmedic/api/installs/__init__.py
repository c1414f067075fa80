"""Commands of installers that are run in a clone."""
