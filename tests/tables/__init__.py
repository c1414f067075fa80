"""The program that makes the compatibility tables: ``make data``."""
