"""The risk of one person under any protection, in closed form or by simulation."""
