"""What the paper ran and claims, computed again, and the book about it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]  # the clone: no wheel has this package
