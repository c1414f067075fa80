"""One repair: preflight, clone, steps, proof, rounds of further plans, exchange."""
