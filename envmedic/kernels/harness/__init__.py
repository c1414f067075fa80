"""The harness of checks: child processes, outcomes, imports."""
