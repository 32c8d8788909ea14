"""Agents of the studies: computing them, storing them, and checking them."""
