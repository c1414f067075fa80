"""A repair in short as text for others: Markdown, a picture, and a page. Pure."""
