"""``python -m tests.gallery``: the gallery in this checkout, as the command `repair-gallery` of its distribution."""

from tests.gallery.repair_gallery.__main__ import program

program()
