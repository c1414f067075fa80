"""The user's own tools of projects: their edits and dry runs, in a copy of manifest and lock."""
