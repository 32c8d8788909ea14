"""What single chapters measure and draw, where it is too long for a cell of their notebooks."""
