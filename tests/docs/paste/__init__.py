"""The page that diagnoses a pasted text in the reader's browser: its files, what packs them, and its tests."""
