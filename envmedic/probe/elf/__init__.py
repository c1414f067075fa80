"""ELF files and the run-time loader, read without loading anything."""
