"""Documents, events and pages as styled lines, for both front ends. Pure: values in, lines out."""
