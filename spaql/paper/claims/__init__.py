"""The paper's claims: what it says, how it is measured, and what our runs say of it."""
