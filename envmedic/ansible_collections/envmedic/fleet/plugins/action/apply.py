"""The controller's side of `envmedic.fleet.apply`."""

from ansible_collections.envmedic.fleet.plugins.plugin_utils.kept import Kept as ActionModule

__all__ = ["ActionModule"]
