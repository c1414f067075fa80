"""The user's configuration of conda: channels, credentials, registered environments."""
