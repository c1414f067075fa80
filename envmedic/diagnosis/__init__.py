"""From matches and facts to findings and a verdict."""
