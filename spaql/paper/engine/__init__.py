"""What several chapters share: agents to compute, running them, storing them, and showing what they earned."""
