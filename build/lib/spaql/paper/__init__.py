"""What the paper ran and claims, computed again, and the book about it."""
