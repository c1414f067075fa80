"""The state of transactions on disk: layout, journal, locks, markers, and the swap of trees under the journal."""
