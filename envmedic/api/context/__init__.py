"""What every use case works with: settings, target, observation, and the wiring of packages."""
