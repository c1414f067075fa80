"""envmedic in notebooks: what a kernel asks (``in_kernel``), and what it is answered by a process of its own."""
