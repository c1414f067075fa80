"""Builders for tests: wheels, indexes, environments and a miniature torch family. All real, all small."""
