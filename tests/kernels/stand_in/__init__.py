"""A torch and a torchvision of plain Python, on which every check passes, and which `FAULT` breaks in one place."""
