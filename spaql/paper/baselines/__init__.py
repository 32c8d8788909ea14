"""What the algorithms are compared with: networks, Sarsa(λ), and the greatest possible return."""
