"""Panels over a screen: questions, choices, help, errors."""
