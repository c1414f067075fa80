"""Conda environments: channels of genuine packages, environments made of them, and real conda as referee."""
