import lists  # type: ignore[import-not-found]

__version__ = "0.6.0" if lists.FAULT == "other release" else "0.6.2"
