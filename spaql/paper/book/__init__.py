"""The book's Sphinx extension, and what its pages show that comes from code and stored results."""
