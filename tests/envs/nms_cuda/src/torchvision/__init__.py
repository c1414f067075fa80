"""A miniature of torchvision: two operators in pure Python, for envmedic's demo and tests. Not torchvision."""

from torchvision import _meta_registrations, extension, ops
from torchvision.version import __version__

__all__ = ["__version__", "_meta_registrations", "extension", "ops"]
