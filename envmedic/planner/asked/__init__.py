"""What a requirement that is asked about would take: ways, verdict, and sets that have wheels. Pure."""
