"""From matches and facts to findings and a verdict."""

from envmedic.diagnosis.findings import diagnose
from envmedic.diagnosis.vocabulary import derive

__all__ = ["derive", "diagnose"]
