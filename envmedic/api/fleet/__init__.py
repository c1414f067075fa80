"""Many environments: one plan for all of a class, and answers from the documents that they sent."""
